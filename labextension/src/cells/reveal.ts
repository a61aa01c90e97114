/**
 * Reveal a cell by its id: find or open the notebook and mark the line.
 *
 * The location comes from the server, not from the HTML of a notebook.
 */

import type { Cell } from '@jupyterlab/cells';
import { CodeMirrorEditor } from '@jupyterlab/codemirror';
import type { IDocumentManager } from '@jupyterlab/docmanager';
import type { INotebookTracker } from '@jupyterlab/notebook';
import { NotebookPanel } from '@jupyterlab/notebook';
import type { TranslationBundle } from '@jupyterlab/translation';
import { markLine, missingExtension, unmark } from './marked_line';

/** A location; `cell` is an id, or a label such as `[3]`. */
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

  /** Reveal the location; rejects with a message if it cannot be found. */
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

  /**
   * The notebook with that path if it is open, otherwise any open notebook that contains the cell.
   */
  private openPanel({ notebook, cell }: IPlace): NotebookPanel | undefined {
    const named = this._tracker.find(panel => panel.context.path === notebook);
    if (named && (!named.context.isReady || indexOf(named, cell) >= 0)) {
      return named;
    }
    // Cell ids survive renaming or moving a notebook; labels are only valid in the same notebook.
    const byId = (panel: NotebookPanel) => panel.content.widgets.some(w => w.model.id === cell);
    return this._tracker.find(byId) ?? named;
  }

  private opened(notebook: string): NotebookPanel {
    // The path comes from a job's record: open only notebooks, with the notebook factory.
    const widget =
      this._documents && notebook.endsWith('.ipynb')
        ? this._documents.openOrReveal(notebook, 'Notebook')
        : undefined;
    if (!(widget instanceof NotebookPanel)) {
      throw new Error(
        notebook
          ? this._trans.__('%1 cannot be opened here.', notebook)
          : this._trans.__('The notebook that submitted the job is not known.')
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
