/** Kernels in containers of the cluster, as the notebooks that they are for show them. */

import type { JupyterFrontEnd, JupyterFrontEndPlugin } from '@jupyterlab/application';
import type { NotebookPanel } from '@jupyterlab/notebook';
import { INotebookTracker } from '@jupyterlab/notebook';
import { ITranslator, nullTranslator } from '@jupyterlab/translation';
import { DOMAIN } from '../api/plugin';
import { ISubmarine } from '../tokens';
import { Notifications } from './voice';
import { KernelWatch } from './watch';

export const kernelsPlugin: JupyterFrontEndPlugin<void> = {
  id: 'jupyter-submarine:kernels',
  description: 'Says what a kernel in a container waits for, and why it is gone.',
  autoStart: true,
  requires: [ISubmarine, INotebookTracker],
  optional: [ITranslator],
  activate: (
    app: JupyterFrontEnd,
    submarine: ISubmarine,
    tracker: INotebookTracker,
    translator: ITranslator | null
  ): void => {
    const trans = (translator ?? nullTranslator).load(DOMAIN);
    const { contents, sessions } = app.serviceManager;
    const add = ({ sessionContext: session, disposed }: NotebookPanel): void => {
      const restart = async (): Promise<void> => {
        // The page may not know yet that the server has dropped the session with the kernel.
        await sessions.refreshRunning();
        await session.changeKernel({ name: session.prevKernelName });
      };
      const watch = new KernelWatch(
        session,
        submarine.channel,
        path => contents.localPath(path),
        new Notifications(app.commands, restart, trans),
        trans
      );
      disposed.connect(() => {
        watch.dispose();
      });
    };
    tracker.forEach(add);
    tracker.widgetAdded.connect((_, panel) => {
      add(panel);
    });
  }
};
