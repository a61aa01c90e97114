/**
 * Finds a cell by its id in an open notebook, or opens the notebook, and marks the line.
 *
 * Only ever called with what the server says about a job: nothing here reads a notebook's HTML.
 */

import type { Cell } from '@jupyterlab/cells';
import { CodeMirrorEditor } from '@jupyterlab/codemirror';
import type { IDocumentManager } from '@jupyterlab/docmanager';
import type { INotebookTracker } from '@jupyterlab/notebook';
import { NotebookPanel } from '@jupyterlab/notebook';
import type { TranslationBundle } from '@jupyterlab/translation';
import { markLine, missingExtension, unmark } from './marked_line';

/** Where to go; `cell` is an id, or a label such as `[3]`. */
export interface IPlace {
  notebook: string;
  cell: string;
  line?: number;
}

export class CellRevealer {
  constructor(
    private readonly _tracker: INotebookTracker,
    private readonly _documents: IDocumentManager | null,
    private readonly _activate: (id: string) => void,
    private readonly _trans: TranslationBundle
  ) {}

  /** Shows the place; rejects with a sentence where it is not to be found. */
  async reveal(place: IPlace): Promise<void> {
    const panel = this.openPanel(place) ?? this.opened(place.notebook);
    await panel.context.ready;
    await panel.revealed;
    const index = indexOf(panel, place.cell);
    if (index < 0) {
      throw new Error(
        this._trans.__('The cell is no longer in %1.', panel.context.path || place.notebook)
      );
    }
    this._activate(panel.id);
    await this.show(panel, index, place.line);
  }

  /** The notebook of that path if it is open, else any open one that holds the cell. */
  private openPanel({ notebook, cell }: IPlace): NotebookPanel | undefined {
    const named = this._tracker.find(panel => panel.context.path === notebook);
    if (named && (!named.context.isReady || indexOf(named, cell) >= 0)) {
      return named;
    }
    // A renamed or moved notebook keeps the ids of its cells; a label means nothing elsewhere.
    const byId = (panel: NotebookPanel) => panel.content.widgets.some(w => w.model.id === cell);
    return this._tracker.find(byId) ?? named;
  }

  private opened(notebook: string): NotebookPanel {
    // The path comes from a job's record: only a notebook is opened, as a notebook.
    const widget =
      this._documents && notebook.endsWith('.ipynb')
        ? this._documents.openOrReveal(notebook, 'Notebook')
        : undefined;
    if (!(widget instanceof NotebookPanel)) {
      throw new Error(
        notebook
          ? this._trans.__('%1 cannot be opened here.', notebook)
          : this._trans.__('Which notebook launched the job is not known.')
      );
    }
    return widget;
  }

  private async show(panel: NotebookPanel, index: number, line?: number): Promise<void> {
    const notebook = panel.content;
    const cell = notebook.widgets[index];
    if (!cell) {
      return;
    }
    cell.inputHidden = false;
    notebook.activeCellIndex = index;
    notebook.deselectAll();
    await notebook.scrollToCell(cell, 'center');
    await cell.ready;
    for (const other of notebook.widgets) {
      const view = viewOf(other);
      if (view) {
        unmark(view);
      }
    }
    const { editor } = cell;
    if (line !== undefined && editor instanceof CodeMirrorEditor) {
      const extension = missingExtension(editor.editor);
      if (extension) {
        editor.injectExtension(extension);
      }
      markLine(editor.editor, line);
    }
  }
}

function viewOf(cell: Cell) {
  return cell.editor instanceof CodeMirrorEditor ? cell.editor.editor : null;
}

function indexOf(panel: NotebookPanel, cell: string): number {
  const cells = panel.content.widgets;
  const byId = cells.findIndex(widget => widget.model.id === cell);
  if (byId >= 0) {
    return byId;
  }
  const count = /^\[(\d+)\]$/.exec(cell)?.[1];
  return count === undefined
    ? -1
    : cells.findIndex(
        ({ model }) => 'executionCount' in model && model.executionCount === Number(count)
      );
}
