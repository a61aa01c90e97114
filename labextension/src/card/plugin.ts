/**
 * Job cards in notebook outputs (MIME renderer) and in tabs (`submarine:show`).
 *
 * Also used by Notebook 7.
 */

import {
  ILayoutRestorer,
  type JupyterFrontEnd,
  type JupyterFrontEndPlugin
} from '@jupyterlab/application';
import { MainAreaWidget, WidgetTracker } from '@jupyterlab/apputils';
import { IRenderMimeRegistry } from '@jupyterlab/rendermime';
import { ITranslator, nullTranslator } from '@jupyterlab/translation';
import type { ReadonlyPartialJSONObject } from '@lumino/coreutils';
import { DOMAIN } from '../api/plugin';
import { jobIcon } from '../icons';
import { CommandIDs, ISubmarine, MIME_TYPE } from '../tokens';
import type { ICardContext } from './context';
import { JobRenderer } from './renderer';
import { isJobId } from './snapshot';
import type { CardWidget } from './widget';

/** Before HTML, which the same output contains for other front ends. */
const RANK = 40;

function contextOf(app: JupyterFrontEnd, translator: ITranslator | null): ICardContext {
  const { commands } = app;
  return {
    trans: (translator ?? nullTranslator).load(DOMAIN),
    has: command => commands.hasCommand(command),
    run: (command: string, args: ReadonlyPartialJSONObject) => commands.execute(command, args)
  };
}

/** Cards in outputs. */
export const cardPlugin: JupyterFrontEndPlugin<void> = {
  id: 'jupyter-submarine:card',
  description: 'Shows a job in the output of a cell, with live updates.',
  autoStart: true,
  requires: [IRenderMimeRegistry],
  optional: [ISubmarine, ITranslator],
  activate: (
    app: JupyterFrontEnd,
    rendermime: IRenderMimeRegistry,
    submarine: ISubmarine | null,
    translator: ITranslator | null
  ): void => {
    const context = contextOf(app, translator);
    rendermime.addFactory(
      {
        // Safe in untrusted notebooks: the JSON is only read as text and numbers.
        safe: true,
        mimeTypes: [MIME_TYPE],
        defaultRank: RANK,
        createRenderer: () => new JobRenderer(submarine, context)
      },
      RANK
    );
  }
};

/** Cards in tabs. */
export const showPlugin: JupyterFrontEndPlugin<void> = {
  id: 'jupyter-submarine:show',
  description: "Opens a job's card as a tab.",
  autoStart: true,
  requires: [ISubmarine],
  optional: [ITranslator, ILayoutRestorer],
  activate: (
    app: JupyterFrontEnd,
    submarine: ISubmarine,
    translator: ITranslator | null,
    restorer: ILayoutRestorer | null
  ): void => {
    const context = contextOf(app, translator);
    const { trans } = context;
    const tracker = new WidgetTracker<MainAreaWidget<CardWidget>>({
      namespace: 'submarine-job'
    });
    const open = async (job: string): Promise<MainAreaWidget<CardWidget>> => {
      const [{ CardWidget }, { CardModel }] = await Promise.all([
        import('./widget'),
        import('./model')
      ]);
      const content = new CardWidget(
        new CardModel(submarine, trans, job, null),
        context,
        () => true
      );
      content.addClass('jp-Submarine-cardTab');
      const widget = new MainAreaWidget({ content });
      widget.id = `submarine-job-${job}`;
      widget.title.icon = jobIcon;
      widget.title.label = job;
      widget.title.caption = trans.__('Job %1', job);
      widget.title.closable = true;
      return widget;
    };
    app.commands.addCommand(CommandIDs.show, {
      label: args =>
        isJobId(args['job']) ? trans.__('Show %1', args['job']) : trans.__('Show Job'),
      execute: async args => {
        const job = args['job'];
        if (!isJobId(job)) {
          throw new Error(trans.__('%1 is not a job id.', JSON.stringify(job ?? '').slice(0, 80)));
        }
        const found = tracker.find(widget => widget.content.model.jobId === job);
        const widget = found ?? (await open(job));
        if (!tracker.has(widget)) {
          await tracker.add(widget);
        }
        if (!widget.isAttached) {
          app.shell.add(widget, 'main');
        }
        if (!widget.isAttached) {
          // The main area of Notebook 7 contains only the notebook.
          app.shell.add(widget, 'right');
        }
        app.shell.activateById(widget.id);
        return widget;
      }
    });
    if (restorer) {
      void restorer.restore(tracker, {
        command: CommandIDs.show,
        args: widget => ({ job: widget.content.model.jobId }),
        name: widget => widget.content.model.jobId
      });
    }
  }
};
