/** The part of react-dom that the tests use. JupyterLab provides the module without types. */
declare module 'react-dom/server' {
  import type { ReactElement } from 'react';
  export function renderToStaticMarkup(element: ReactElement): string;
}
