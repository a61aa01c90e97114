/** Controls of a toolbar as plain elements: buttons, toggles, selections. */

import type { LabIcon } from '@jupyterlab/ui-components';

/** A button with a text or an icon. */
export function button(
  face: string | LabIcon,
  title: string,
  onClick: () => void
): HTMLButtonElement {
  const node = document.createElement('button');
  node.type = 'button';
  node.className = 'jp-Submarine-log-button';
  node.title = title;
  if (typeof face === 'string') {
    node.textContent = face;
  } else {
    node.setAttribute('aria-label', title);
    node.append(face.element({ tag: 'span', stylesheet: 'toolbarButton' }));
  }
  node.addEventListener('click', onClick);
  return node;
}

/** A toggle button. */
export class Toggle {
  constructor(
    face: string | LabIcon,
    title: string,
    pressed: boolean,
    onChange: (pressed: boolean) => void
  ) {
    this.node = button(face, title, () => {
      this.pressed = !this.pressed;
      onChange(this.pressed);
    });
    this.pressed = pressed;
  }

  readonly node: HTMLButtonElement;

  get pressed(): boolean {
    return this.node.getAttribute('aria-pressed') === 'true';
  }
  set pressed(pressed: boolean) {
    this.node.setAttribute('aria-pressed', String(pressed));
  }
}

/** A selection of one value. */
export class Choice {
  constructor(label: string, onChange: (value: string) => void) {
    this.node = document.createElement('select');
    this.node.className = 'jp-Submarine-log-select';
    this.node.title = label;
    this.node.setAttribute('aria-label', label);
    this.node.addEventListener('change', () => {
      onChange(this.node.value);
    });
  }

  readonly node: HTMLSelectElement;

  /** Set the entries and the selected value. */
  set(entries: readonly (readonly [string, string])[], value: string): void {
    const now = JSON.stringify(entries);
    if (now !== this._entries) {
      this._entries = now;
      const options = entries.map(([key, text]) => new Option(text, key));
      this.node.replaceChildren(...options);
    }
    this.node.value = value;
  }

  private _entries = '';
}
