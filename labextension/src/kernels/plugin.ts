/** Notifications about kernels in containers, for notebooks and consoles. */

import type { JupyterFrontEnd, JupyterFrontEndPlugin } from '@jupyterlab/application';
import type { ISessionContext } from '@jupyterlab/apputils';
import { IConsoleTracker } from '@jupyterlab/console';
import { INotebookTracker } from '@jupyterlab/notebook';
import { ITranslator, nullTranslator } from '@jupyterlab/translation';
import { DOMAIN } from '../api/plugin';
import type { Widget } from '@lumino/widgets';
import { ISubmarine } from '../tokens';
import { KernelSharing } from './sharing';
import { KernelNotifications } from './notifications';
import { KernelMonitor } from './monitor';

/** The common part of notebook and console panels. */
interface IPanel {
  readonly sessionContext: ISessionContext;
  readonly disposed: Widget['disposed'];
}

export const kernelsPlugin: JupyterFrontEndPlugin<void> = {
  id: 'jupyter-submarine:kernels',
  description: 'Shows why a kernel in a container waits, and why it ended.',
  autoStart: true,
  requires: [ISubmarine, INotebookTracker],
  optional: [IConsoleTracker, ITranslator],
  activate: (
    app: JupyterFrontEnd,
    submarine: ISubmarine,
    notebooks: INotebookTracker,
    consoles: IConsoleTracker | null,
    translator: ITranslator | null
  ): void => {
    const trans = (translator ?? nullTranslator).load(DOMAIN);
    const { contents, sessions } = app.serviceManager;
    const open = new Set<KernelSharing>();
    const add = ({ sessionContext: session, disposed }: IPanel): void => {
      const sharing = new KernelSharing(
        session,
        () => sessions.running(),
        path => contents.localPath(path)
      );
      const update = (): void => {
        sharing.update();
      };
      session.statusChanged.connect(update);
      open.add(sharing);
      const restart = async (): Promise<void> => {
        // The page may still list the session that the server removed with the kernel.
        await sessions.refreshRunning();
        await session.changeKernel({ name: session.prevKernelName });
      };
      const watch = new KernelMonitor(
        session,
        submarine.channel,
        () => sharing.documents(open),
        new KernelNotifications(app.commands, restart, trans),
        trans
      );
      disposed.connect(() => {
        session.statusChanged.disconnect(update);
        open.delete(sharing);
        watch.dispose();
      });
    };
    notebooks.forEach(add);
    notebooks.widgetAdded.connect((_, panel) => {
      add(panel);
    });
    consoles?.forEach(add);
    consoles?.widgetAdded.connect((_, panel) => {
      add(panel);
    });
  }
};
