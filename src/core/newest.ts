/** Sets an entry of a map that holds at most `max`, as its newest one: the one that was set the longest ago is dropped. */
export function setNewest<Key, Value>(map: Map<Key, Value>, key: Key, value: Value, max: number): void {
  map.delete(key)
  map.set(key, value)
  if (map.size > max) map.delete(map.keys().next().value!)
}
