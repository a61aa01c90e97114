/** The one thing that tests need of react-dom, which JupyterLab brings without types. */
declare module 'react-dom/server' {
  import type { ReactElement } from 'react';
  export function renderToStaticMarkup(element: ReactElement): string;
}
