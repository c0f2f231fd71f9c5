import { render } from 'preact'
import { App } from './app.tsx'
import { Insecure } from './sign-in.tsx'
import './layout.tsx'

render(isSecureContext ? <App /> : <Insecure />, document.querySelector('#page')!)
