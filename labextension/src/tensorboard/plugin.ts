/**
 * TensorBoard through the server: in a tab (`submarine:tensorboard`), restored after a reload, and
 * in the output of `%submarine tensorboard`.
 *
 * Frames show only addresses of the Jupyter server, built from job ids. A TensorBoard that runs
 * inside a job is a plain link on its card.
 */

import {
  ILayoutRestorer,
  type JupyterFrontEnd,
  type JupyterFrontEndPlugin
} from '@jupyterlab/application';
import { MainAreaWidget, WidgetTracker } from '@jupyterlab/apputils';
import { IRenderMimeRegistry } from '@jupyterlab/rendermime';
import { ITranslator, nullTranslator } from '@jupyterlab/translation';
import { DOMAIN } from '../api/plugin';
import { CommandIDs, ISubmarine } from '../tokens';
import { jobIds, nameOf, TensorBoardWidget } from './widget';
import { TensorBoardRenderer } from './renderer';

/** MIME type of `%submarine tensorboard`: `{ jobs: string[] }`. */
export const TENSORBOARD_MIME_TYPE = 'application/vnd.submarine.tensorboard.v1+json';
const RANK = 40;

export const tensorboardPlugin: JupyterFrontEndPlugin<void> = {
  id: 'jupyter-submarine:tensorboard',
  description: 'Shows TensorBoard of jobs, in tabs and in outputs.',
  autoStart: true,
  requires: [ISubmarine, IRenderMimeRegistry],
  optional: [ITranslator, ILayoutRestorer],
  activate: (
    app: JupyterFrontEnd,
    submarine: ISubmarine,
    rendermime: IRenderMimeRegistry,
    translator: ITranslator | null,
    restorer: ILayoutRestorer | null
  ): void => {
    const { commands, shell } = app;
    const trans = (translator ?? nullTranslator).load(DOMAIN);
    const tracker = new WidgetTracker<MainAreaWidget<TensorBoardWidget>>({
      namespace: 'submarine-tensorboard'
    });

    commands.addCommand(CommandIDs.tensorboard, {
      label: args => {
        const jobs = jobIds(args['jobs']);
        return jobs.length > 0
          ? trans.__('Show TensorBoard of %1', jobs.join(', '))
          : trans.__('Show TensorBoard');
      },
      caption: trans.__('Compare the training curves of jobs'),
      isEnabled: args => args['jobs'] === undefined || jobIds(args['jobs']).length > 0,
      execute: async args => {
        const jobs = jobIds(args['jobs']);
        if (jobs.length === 0) {
          throw new Error(trans.__('submarine:tensorboard requires job ids.'));
        }
        const name = nameOf(jobs);
        const open = tracker.find(widget => nameOf(widget.content.jobs) === name);
        const widget = open ?? createTab(jobs);
        if (!tracker.has(widget)) {
          await tracker.add(widget);
        }
        if (!widget.isAttached) {
          shell.add(widget, 'main');
        }
        shell.activateById(widget.id);
        return widget;
      },
      describedBy: {
        args: {
          type: 'object',
          required: ['jobs'],
          properties: { jobs: { type: 'array', items: { type: 'string' } } }
        }
      }
    });

    function createTab(jobs: readonly string[]): MainAreaWidget<TensorBoardWidget> {
      const content = new TensorBoardWidget(jobs, submarine.rest.tensorboardUrl(jobs), trans);
      const widget = new MainAreaWidget({ content });
      widget.id = `submarine-tensorboard-tab-${nameOf(jobs)}`;
      return widget;
    }

    if (restorer) {
      void restorer.restore(tracker, {
        command: CommandIDs.tensorboard,
        args: widget => ({ jobs: [...widget.content.jobs] }),
        name: widget => nameOf(widget.content.jobs)
      });
    }

    const context = {
      trans,
      problem: async () => {
        const { available, problem } = await submarine.ready;
        return available ? '' : problem;
      },
      url: (jobs: readonly string[]) => submarine.rest.tensorboardUrl(jobs),
      openTab: (jobs: readonly string[]) => {
        void commands.execute(CommandIDs.tensorboard, { jobs: [...jobs] });
      }
    };
    rendermime.addFactory(
      {
        // Safe in untrusted notebooks: the output names jobs, and TensorBoard starts only after a
        // click.
        safe: true,
        mimeTypes: [TENSORBOARD_MIME_TYPE],
        defaultRank: RANK,
        createRenderer: options => new TensorBoardRenderer(options.mimeType, context)
      },
      RANK
    );
  }
};
