/** Label the cells of a notebook that are collected by their tag, also for screen readers. */

import type { Cell, ICellModel } from '@jupyterlab/cells';
import type { Notebook, NotebookPanel } from '@jupyterlab/notebook';
import type { TranslationBundle } from '@jupyterlab/translation';
import { collectedInto } from './tag';

const CLASS = 'jp-Submarine-collected';
/** Attribute of the element that shows the label, for CSS. */
const LABEL = 'data-submarine-label';

/** Keep the labels of one notebook up to date until it is closed. */
export class CollectedMarks {
  constructor(
    private readonly _panel: NotebookPanel,
    private readonly _trans: TranslationBundle,
    private _enabled: boolean
  ) {
    const notebook = _panel.content;
    notebook.modelChanged.connect(changed => {
      this.follow(changed);
    });
    this.follow(notebook);
  }

  get enabled(): boolean {
    return this._enabled;
  }

  set enabled(enabled: boolean) {
    this._enabled = enabled;
    this.markAll();
  }

  private follow(notebook: Notebook): void {
    notebook.model?.cells.changed.connect(() => {
      this.later();
    });
    this.later();
  }

  /** Update once for many changes, after the notebook has created the widgets of new cells. */
  private later(): void {
    this._waiting ??= Promise.resolve().then(() => {
      this._waiting = null;
      if (!this._panel.isDisposed) {
        this.markAll();
      }
    });
  }

  private markAll(): void {
    for (const cell of this._panel.content.widgets) {
      if (!this._followed.has(cell.model)) {
        this._followed.add(cell.model);
        cell.model.metadataChanged.connect((_, { key }) => {
          if (key === 'tags') {
            this.later();
          }
        });
      }
      this.mark(cell);
    }
  }

  private mark(cell: Cell): void {
    if (cell.isDisposed) {
      return;
    }
    const input = cell.inputArea?.parent?.node;
    if (input === undefined) {
      // A cell that was never visible has no editor yet.
      void cell.ready.then(() => {
        this.mark(cell);
      });
    }
    const tagged =
      cell.model.type === 'code' ? collectedInto(cell.model.getMetadata('tags')) : null;
    const file = this._enabled ? tagged : null;
    const { node } = cell;
    if (file === null) {
      if (node.classList.contains(CLASS)) {
        node.classList.remove(CLASS);
        node.removeAttribute('aria-description');
        input?.removeAttribute(LABEL);
      }
      return;
    }
    node.classList.add(CLASS);
    node.setAttribute('aria-description', this._trans.__('Collected into %1 when it runs', file));
    // A tag without a file name is rejected when the cell runs.
    input?.setAttribute(LABEL, file || '?');
  }

  private readonly _followed = new WeakSet<ICellModel>();
  private _waiting: Promise<void> | null = null;
}
