import type { ComponentType } from 'preact'

/** The props of a view: the parameters of its path. */
export interface ViewProps {
  params: Record<string, string>
}

/** One view of the page. Its module exports a component `View` and is loaded on first use. */
export interface View {
  /** The route, such as `/domains/:id`; its first segment must be one of `places` in ../paths.ts. */
  path: string
  /** The title of the browser's tab. */
  title: string
  /** Its name in the navigation; omitted: it is not there. */
  navigation?: string
  /** Its name among the tabs of an identity, for paths below `/identities/:id`. */
  tab?: string
  load: () => Promise<{ View: ComponentType<ViewProps> }>
}
