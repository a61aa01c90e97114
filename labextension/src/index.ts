import type { JupyterFrontEndPlugin } from '@jupyterlab/application';
import { apiPlugin } from './api/plugin';
import { logPlugin } from './log/plugin';
import { panelPlugin } from './panel/plugin';
import { cardPlugin, showPlugin } from './card/plugin';
import { cellsPlugin } from './cells/plugin';
import { commandsPlugin } from './commands/plugin';
import { completionPlugin } from './completion/plugin';
import { kernelsPlugin } from './kernels/plugin';
import { tensorboardPlugin } from './tensorboard/plugin';
import { workflowPlugin } from './workflow/plugin';

const plugins: JupyterFrontEndPlugin<unknown>[] = [
  apiPlugin,
  commandsPlugin,
  cellsPlugin,
  completionPlugin,
  cardPlugin,
  showPlugin,
  logPlugin,
  panelPlugin,
  kernelsPlugin,
  tensorboardPlugin,
  workflowPlugin
];
export default plugins;
