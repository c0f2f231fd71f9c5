import { render } from 'preact'
import { App } from './app.tsx'
import { Insecure } from './insecure.tsx'
import './theme.ts'

render(isSecureContext ? <App /> : <Insecure />, document.querySelector('#page')!)
