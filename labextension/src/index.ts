import type { JupyterFrontEndPlugin } from '@jupyterlab/application';
import { apiPlugin } from './api/plugin';

const plugins: JupyterFrontEndPlugin<unknown>[] = [
  // One line a concern.
  apiPlugin
];
export default plugins;
