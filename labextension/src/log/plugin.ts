/** The command that opens a job's log as a tab. The view is loaded with the first use. */

import {
  ILabShell,
  ILayoutRestorer,
  type JupyterFrontEnd,
  type JupyterFrontEndPlugin
} from '@jupyterlab/application';
import { MainAreaWidget, WidgetTracker } from '@jupyterlab/apputils';
import { ISettingRegistry } from '@jupyterlab/settingregistry';
import { ITranslator, nullTranslator } from '@jupyterlab/translation';
import { logIcon } from '../icons';
import { CommandIDs, ISubmarine } from '../tokens';
import { DOMAIN } from '../api/plugin';
import { isJobId } from '../card/snapshot';
import { readSettings } from '../settings';
import type { LogView } from './view/view';

/** A task name such as `worker:0`. */
const TASK = /^[A-Za-z][A-Za-z0-9_-]{0,63}:[0-9]{1,6}$/;

export const logPlugin: JupyterFrontEndPlugin<void> = {
  id: 'jupyter-submarine:log',
  description: "Shows a job's log as a tab.",
  autoStart: true,
  requires: [ISubmarine],
  optional: [ITranslator, ILayoutRestorer, ILabShell, ISettingRegistry],
  activate: (
    app: JupyterFrontEnd,
    submarine: ISubmarine,
    translator: ITranslator | null,
    restorer: ILayoutRestorer | null,
    labShell: ILabShell | null,
    registry: ISettingRegistry | null
  ): void => {
    const trans = (translator ?? nullTranslator).load(DOMAIN);
    const tracker = new WidgetTracker<MainAreaWidget<LogView>>({ namespace: 'submarine-log' });
    const open = async (job: string, task: string) => {
      const { LogView } = await import('./view/view');
      const { follow, wrap, timestamps } = await readSettings(registry);
      const appearance = { wrap, times: timestamps };
      const content = new LogView({ submarine, job, task, appearance, follow, trans });
      const widget = new MainAreaWidget({ content });
      widget.toolbar.hide();
      widget.id = `submarine-log-${job}`;
      widget.title.icon = logIcon;
      widget.title.label = trans.__('Log of %1', job);
      widget.title.caption = widget.title.label;
      widget.title.closable = true;
      return widget;
    };
    app.commands.addCommand(CommandIDs.logs, {
      label: args =>
        isJobId(args['job']) ? trans.__('Logs of %1', args['job']) : trans.__('Show Logs of a Job'),
      execute: async args => {
        const { job, task } = args;
        if (!isJobId(job)) {
          throw new Error(trans.__('%1 is not a job id.', JSON.stringify(job ?? '').slice(0, 80)));
        }
        const name = typeof task === 'string' && TASK.test(task) ? task : '';
        const found = tracker.find(widget => widget.content.model.job === job);
        const widget = found ?? (await open(job, name));
        if (found !== undefined && name !== '') {
          found.content.setTask(name);
        }
        if (!tracker.has(widget)) {
          await tracker.add(widget);
        }
        if (!widget.isAttached) {
          // The main area of Notebook 7 contains only the document: open the log below it.
          app.shell.add(widget, labShell === null ? 'down' : 'main');
        }
        app.shell.activateById(widget.id);
        return widget;
      }
    });
    if (restorer !== null) {
      void restorer.restore(tracker, {
        command: CommandIDs.logs,
        args: widget => ({ job: widget.content.model.job, task: widget.content.model.filter.task }),
        name: widget => widget.content.model.job
      });
    }
  }
};
