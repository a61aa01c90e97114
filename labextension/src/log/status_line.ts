
import type { TranslationBundle } from '@jupyterlab/translation';

export class StatusLine {
  constructor(
    private readonly _trans: TranslationBundle,
    private readonly _onRetry: () => void
  ) {
    this.node = document.createElement('div');
    this.node.className = 'jp-Submarine-log-status';
    this.node.setAttribute('role', 'status');
  }

  readonly node: HTMLElement;

  /** Show a text. A repeated text is ignored, so that screen readers read it once. */
  say(text: string, retry = false): void {
    const said = `${String(retry)} ${text}`;
    if (said === this._said) {
      return;
    }
    this._said = said;
    this.node.replaceChildren(text);
    if (retry) {
      const again = document.createElement('button');
      again.type = 'button';
      again.className = 'jp-Submarine-log-link';
      again.textContent = this._trans.__('Try again');
      again.addEventListener('click', this._onRetry);
      this.node.append(again);
    }
  }

  private _said = '';
}
