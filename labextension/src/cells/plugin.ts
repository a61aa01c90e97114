/**
 * Cells that are collected by the tag `submarine`, and the command that reveals the cell of a job.
 *
 * JupyterLab sends a cell's id, tags and other metadata with each execution; the kernel collects
 * the cell (`submarine_magics`).
 */

import type { JupyterFrontEnd, JupyterFrontEndPlugin } from '@jupyterlab/application';
import { ICommandPalette } from '@jupyterlab/apputils';
import { IDocumentManager } from '@jupyterlab/docmanager';
import type { NotebookPanel } from '@jupyterlab/notebook';
import { INotebookTracker } from '@jupyterlab/notebook';
import { ISettingRegistry } from '@jupyterlab/settingregistry';
import type { TranslationBundle } from '@jupyterlab/translation';
import { ITranslator, nullTranslator } from '@jupyterlab/translation';
import { DOMAIN } from '../api/plugin';
import { SETTINGS, complete, readSettings } from '../settings';
import { CommandIDs } from '../tokens';
import { CollectedMarks } from './marks';
import { toggled } from './tag';

/** Adds the tag to the active cell or removes it. */
const TOGGLE_TAG = 'submarine:toggle-tag';

export const cellsPlugin: JupyterFrontEndPlugin<void> = {
  id: 'jupyter-submarine:cells',
  description: 'Labels the cells that are collected by their tag, and reveals the cell of a job.',
  autoStart: true,
  requires: [INotebookTracker],
  optional: [IDocumentManager, ICommandPalette, ISettingRegistry, ITranslator],
  activate: (
    app: JupyterFrontEnd,
    tracker: INotebookTracker,
    documents: IDocumentManager | null,
    palette: ICommandPalette | null,
    registry: ISettingRegistry | null,
    translator: ITranslator | null
  ): void => {
    const trans = (translator ?? nullTranslator).load(DOMAIN);
    keepMarks(tracker, registry, trans);
    addReveal(app, tracker, documents, trans);
    app.commands.addCommand(TOGGLE_TAG, {
      label: trans.__('Toggle Collecting of This Cell'),
      isEnabled: () => tracker.activeCell?.model.type === 'code',
      execute: () => {
        const model = tracker.activeCell?.model;
        model?.setMetadata('tags', toggled(model.getMetadata('tags')));
      }
    });
    palette?.addItem({ command: TOGGLE_TAG, category: trans.__('Submarine') });
  }
};

function keepMarks(
  tracker: INotebookTracker,
  registry: ISettingRegistry | null,
  trans: TranslationBundle
): void {
  const marks = new Map<NotebookPanel, CollectedMarks>();
  let enabled = true;
  const add = (panel: NotebookPanel): void => {
    marks.set(panel, new CollectedMarks(panel, trans, enabled));
    panel.disposed.connect(() => marks.delete(panel));
  };
  tracker.forEach(add);
  tracker.widgetAdded.connect((_, panel) => {
    add(panel);
  });
  const apply = (wanted: boolean): void => {
    enabled = wanted;
    for (const mark of marks.values()) {
      mark.enabled = wanted;
    }
  };
  void readSettings(registry).then(settings => {
    apply(settings.markCollectedCells);
  });
  registry?.pluginChanged.connect((_, plugin) => {
    if (plugin === SETTINGS) {
      void registry.load(SETTINGS).then(({ composite }) => {
        apply(complete(composite).markCollectedCells);
      });
    }
  });
}

function addReveal(
  app: JupyterFrontEnd,
  tracker: INotebookTracker,
  documents: IDocumentManager | null,
  trans: TranslationBundle
): void {
  app.commands.addCommand(CommandIDs.revealCell, {
    label: trans.__('Show the Cell of a Job'),
    execute: async args => {
      const { notebook, cell, line } = args;
      if (typeof cell !== 'string' || !cell) {
        throw new Error(trans.__('The cell that submitted the job is not known.'));
      }
      const { CellRevealer } = await import('./reveal');
      const activate = (id: string): void => {
        app.shell.activateById(id);
      };
      await new CellRevealer(tracker, documents, activate, trans).reveal({
        notebook: typeof notebook === 'string' ? notebook : '',
        cell,
        ...(typeof line === 'number' ? { line } : {})
      });
    }
  });
}
