/** Documents that share a kernel: the job of the kernel names only one of them. */

import type { ISessionContext } from '@jupyterlab/apputils';
import { PathExt } from '@jupyterlab/coreutils';
import type { Session } from '@jupyterlab/services';

type Part = Pick<ISessionContext, 'session' | 'path' | 'name'>;

/**
 * The document name that the server passes to a kernel; for a console, its name in its directory.
 */
export function documentOf(path: string, name: string): string {
  return PathExt.join(PathExt.dirname(path), name);
}

/**
 * Store the documents that share a kernel; the server does not list them after the kernel has
 * ended.
 */
export class KernelSharing {
  constructor(
    private readonly _session: Part,
    private readonly _running: () => Iterable<Session.IModel>,
    /** Removes the drive name from a path. */
    private readonly _local: (path: string) => string
  ) {}

  /** The document of this panel. */
  get own(): string {
    return documentOf(this._local(this._session.path), this._session.name);
  }

  /** Update the documents that share the current kernel. */
  update(): void {
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
   * The document of this panel, then others that shared the kernel. Empty if other panels report
   * all of them.
   *
   * @param open - All open panels. If two panels have the same document, the first one reports it.
   */
  documents(open: Iterable<KernelSharing>): string[] {
    const others = [...open];
    const before = others.slice(0, Math.max(0, others.indexOf(this))).map(other => other.own);
    const reported = new Set(others.filter(other => other !== this).map(other => other.own));
    const own = before.includes(this.own) ? [] : [this.own];
    return [...own, ...this._others.filter(name => !reported.has(name))];
  }

  private _kernel = '';
  private _others: string[] = [];
}
