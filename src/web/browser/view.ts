import type { ComponentType } from 'preact'

/** What a view is given: the parameters of its path. */
export interface ViewProps {
  params: Record<string, string>
}

/** One view of the page. Whatever its module exports as `View` is fetched when somebody first goes there. */
export interface View {
  /** As the router reads it, `/domains/:id`; its first word must be one of `places` in ../paths.ts. */
  path: string
  /** The title of the browser's tab. */
  title: string
  /** Its name in the navigation at the top; left out: it is not there. */
  navigation?: string
  /** Its name among the tabs of an identity, for paths below `/identities/:id`. */
  tab?: string
  load: () => Promise<{ View: ComponentType<ViewProps> }>
}
