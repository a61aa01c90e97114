/** Whose kernel a console or notebook has: one that was opened on another's has that one's job. */

import type { ISessionContext } from '@jupyterlab/apputils';
import { PathExt } from '@jupyterlab/coreutils';
import type { Session } from '@jupyterlab/services';

type Part = Pick<ISessionContext, 'session' | 'path' | 'name'>;

/** What the server tells a kernel that it is for: a console goes by its name in its directory. */
export function documentOf(path: string, name: string): string {
  return PathExt.join(PathExt.dirname(path), name);
}

/** Remembers with whom a kernel was shared, since nobody knows that once it is gone. */
export class Sharing {
  constructor(
    private readonly _session: Part,
    private readonly _running: () => Iterable<Session.IModel>,
    /** A path without the name of its drive. */
    private readonly _local: (path: string) => string
  ) {}

  /** The document of this one itself. */
  get own(): string {
    return documentOf(this._local(this._session.path), this._session.name);
  }

  /** Look who has the same kernel now, if it has one. */
  look(): void {
    const kernel = this._session.session?.kernel?.id;
    if (!kernel) {
      return;
    }
    const shared = [...this._running()].filter(model => model.kernel?.id === kernel);
    const documents = shared.map(model => documentOf(model.path, model.name));
    const known = kernel === this._kernel ? this._others : [];
    this._kernel = kernel;
    this._others = [...new Set([...known, ...documents])].filter(name => name !== this.own);
  }

  /**
   * Its own document, then those whose kernel it had; empty: others tell of all of them.
   *
   * @param open - all there are: of two with one document the first tells, each of its own.
   */
  documents(open: Iterable<Sharing>): string[] {
    const others = [...open];
    const before = others.slice(0, Math.max(0, others.indexOf(this))).map(other => other.own);
    const told = new Set(others.filter(other => other !== this).map(other => other.own));
    const own = before.includes(this.own) ? [] : [this.own];
    return [...own, ...this._others.filter(name => !told.has(name))];
  }

  private _kernel = '';
  private _others: string[] = [];
}
