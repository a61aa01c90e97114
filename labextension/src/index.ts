import type { JupyterFrontEndPlugin } from '@jupyterlab/application';
import { apiPlugin } from './api/plugin';
import { cardPlugin, showPlugin } from './card/plugin';

const plugins: JupyterFrontEndPlugin<unknown>[] = [
  // One line a concern.
  apiPlugin,
  cardPlugin,
  showPlugin
];
export default plugins;
