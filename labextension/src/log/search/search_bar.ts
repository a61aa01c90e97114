/** The search field of the log view with its buttons and the match count. */

import type { TranslationBundle } from '@jupyterlab/translation';
import {
  caretDownEmptyThinIcon,
  caretUpEmptyThinIcon,
  caseSensitiveIcon,
  regexIcon
} from '@jupyterlab/ui-components';
import { button, Toggle } from '../view/controls';
import type { ICount } from './search';
import type { IQuery } from './search_query';

/** Delay after the last key before a search starts, in milliseconds. */
const DELAY = 350;

export interface ISearchBarOptions {
  readonly trans: TranslationBundle;
  readonly onQuery: (query: IQuery | null) => void;
  readonly onStep: (backward: boolean) => void;
}

export class SearchBar {
  constructor(private readonly _options: ISearchBarOptions) {
    const { trans } = _options;
    this.node = document.createElement('div');
    this.node.className = 'jp-Submarine-log-search';
    this.node.setAttribute('role', 'search');
    this.node.setAttribute('aria-label', trans.__('Search in the log'));
    this.input = document.createElement('input');
    this.input.type = 'search';
    this.input.className = 'jp-Submarine-log-input';
    this.input.placeholder = trans.__('Search the log');
    this.input.setAttribute('aria-label', trans.__('Search the log'));
    this.input.maxLength = 1000;
    this.input.spellcheck = false;
    const changed = () => {
      this._changed();
    };
    this._case = new Toggle(caseSensitiveIcon, trans.__('Match case'), false, changed);
    this._regex = new Toggle(regexIcon, trans.__('Regular expression'), false, changed);
    this._count = document.createElement('span');
    this._count.className = 'jp-Submarine-log-count';
    this._count.setAttribute('role', 'status');
    this.node.append(
      this.input,
      this._case.node,
      this._regex.node,
      button(caretUpEmptyThinIcon, trans.__('Previous match (Shift+Enter)'), () => {
        this._step(true);
      }),
      button(caretDownEmptyThinIcon, trans.__('Next match (Enter)'), () => {
        this._step(false);
      }),
      this._count
    );
    this.input.addEventListener('input', () => {
      clearTimeout(this._timer);
      this._timer = setTimeout(changed, DELAY);
    });
    this.input.addEventListener('keydown', event => {
      this._key(event);
    });
  }

  readonly node: HTMLElement;
  readonly input: HTMLInputElement;

  /** The current query; null if the field is empty. */
  get query(): IQuery | null {
    return this._query;
  }

  /** Focus the field and select its text. */
  focus(): void {
    this.input.focus();
    this.input.select();
  }

  /** Show the number of matches. */
  show(count: ICount): void {
    const { trans } = this._options;
    if (this.input.value === '') {
      this._count.textContent = '';
    } else if (count.message !== '') {
      this._count.textContent = count.message;
    } else {
      const total = `${count.total.toLocaleString()}${count.more ? '+' : ''}`;
      this._count.textContent =
        count.total === 0 && !count.more
          ? trans.__('no match')
          : count.current === null
            ? trans.__('%1 matches', total)
            : trans.__('%1 of %2', count.current.toLocaleString(), total);
    }
  }

  dispose(): void {
    clearTimeout(this._timer);
  }

  private _key(event: KeyboardEvent): void {
    if (event.key === 'Enter') {
      event.preventDefault();
      this._step(event.shiftKey);
    } else if (event.key === 'Escape' && this.input.value !== '') {
      event.preventDefault();
      event.stopPropagation();
      this.input.value = '';
      this._changed();
    }
  }

  private _step(backward: boolean): void {
    const before = this._current;
    clearTimeout(this._timer);
    this._changed();
    // Starting a new query already goes to the nearest match.
    if (this._current === before && this.input.value !== '') {
      this._options.onStep(backward);
    }
  }

  private _changed(): void {
    const query: IQuery = {
      text: this.input.value,
      matchCase: this._case.pressed,
      regex: this._regex.pressed
    };
    const current = query.text === '' ? '' : JSON.stringify(query);
    if (current !== this._current) {
      this._current = current;
      this._query = current === '' ? null : query;
      this._options.onQuery(this._query);
    }
  }

  private _query: IQuery | null = null;
  private _current = '';
  private _timer: ReturnType<typeof setTimeout> | undefined;
  private readonly _case: Toggle;
  private readonly _regex: Toggle;
  private readonly _count: HTMLElement;
}
