/** One notebook's or console's kernel: says what it waits for while it starts, and why it is gone. */

import type { ISessionContext } from '@jupyterlab/apputils';
import type { TranslationBundle } from '@jupyterlab/translation';
import type { IDisposable } from '@lumino/disposable';
import { ENDED } from '../api/job_types';
import type { IJobRow } from '../api/list_types';
import type { IChannel, ISubscription } from '../tokens';
import { isRemote, isWaiting, newestOf } from './jobs';

/** Milliseconds that a start may take before anything is said of it. */
export const QUICK = 1500;
/** Milliseconds in which the end of a lost kernel's job is expected; then it goes on, it seems. */
export const GRACE = 10_000;

/** Where sentences go; each answers for one kernel. */
export interface IVoice {
  /** The start goes on; again with each new sentence. */
  waits(sentence: string, job: string): void;
  /** What was said is over: the kernel is there, or gone as it should. */
  done(): void;
  /** The kernel is gone. */
  gone(sentence: string, job: string): void;
  /** The server knows it no more, but it runs: starting it again finds it. */
  lives(sentence: string, job: string): void;
}

export type SessionPart = Pick<
  ISessionContext,
  | 'kernelDisplayName'
  | 'kernelDisplayStatus'
  | 'prevKernelName'
  | 'session'
  | 'sessionChanged'
  | 'statusChanged'
> & { specsManager: Pick<ISessionContext['specsManager'], 'specs'> };

export class KernelWatch implements IDisposable {
  constructor(
    private readonly _session: SessionPart,
    private readonly _channel: Pick<IChannel, 'jobs'>,
    /** The document that its job is for. */
    private readonly _document: () => string,
    private readonly _voice: IVoice,
    private readonly _trans: TranslationBundle
  ) {
    _session.statusChanged.connect(this._onStatus);
    _session.sessionChanged.connect(this._onSession);
    this._onStatus();
  }

  get isDisposed(): boolean {
    return this._disposed;
  }

  dispose(): void {
    this._disposed = true;
    this._session.statusChanged.disconnect(this._onStatus);
    this._session.sessionChanged.disconnect(this._onSession);
    this._stop();
  }

  private readonly _onStatus = (): void => {
    const status = this._session.kernelDisplayStatus;
    const kernel = this._kernel();
    this._leaving = status === 'terminating' || (this._leaving && status === 'unknown');
    if (status === 'dead') {
      this._lose();
    } else if (kernel !== undefined && (status === 'starting' || status === 'initializing')) {
      if (this._phase !== 'starting') {
        this._begin('starting', kernel);
      }
    } else if (this._phase === 'starting' || status === 'idle' || status === 'busy') {
      this._stop();
    }
  };

  /** A server that was started anew knows no session, and tells of no death either. */
  private readonly _onSession = (): void => {
    if (this._session.session === null && !this._leaving) {
      this._lose();
    }
  };

  private _lose(): void {
    const lost = this._remote(this._session.prevKernelName);
    if (lost !== undefined && this._phase !== 'gone') {
      this._begin('gone', lost);
    }
  }

  /** The kernelspec that is chosen, if it is one of those in containers. */
  private _kernel(): string | undefined {
    const shown = this._session.kernelDisplayName;
    const specs = this._session.specsManager.specs?.kernelspecs ?? {};
    const found = Object.values(specs).find(spec => spec?.display_name === shown);
    return found && this._remote(found.name);
  }

  private _remote(name: string): string | undefined {
    const spec = this._session.specsManager.specs?.kernelspecs[name];
    return isRemote(spec?.metadata) ? name : undefined;
  }

  private _begin(phase: 'starting' | 'gone', kernel: string): void {
    this._stop();
    this._phase = phase;
    this._since = Date.now();
    const follow = (): void => {
      this._jobs = this._channel.jobs(rows => {
        const row = newestOf(rows, kernel, this._document());
        if (row && this._phase === phase) {
          this._tell(phase, kernel, row);
        }
      });
    };
    if (phase === 'gone') {
      follow();
    } else {
      this._timer = window.setTimeout(follow, QUICK);
    }
  }

  private _tell(phase: 'starting' | 'gone', kernel: string, row: IJobRow): void {
    const { _trans: trans } = this;
    if (phase === 'gone') {
      this._tellEnd(kernel, row);
    } else if (isWaiting(row)) {
      const why = row.detail || trans.__('its container is being started');
      this._voice.waits(trans.__('The kernel %1 waits: %2', kernel, why), row.job_id);
    } else {
      this._voice.done();
    }
  }

  private _tellEnd(kernel: string, row: IJobRow): void {
    const { _trans: trans } = this;
    window.clearTimeout(this._timer);
    if (row.state === 'SUCCEEDED') {
      this._stop(); // somebody has shut it down
    } else if (ENDED.has(row.state)) {
      this._unsubscribe();
      const why = row.detail || row.state;
      this._voice.gone(
        trans.__('The kernel %1 has lost its container: %2', kernel, why),
        row.job_id
      );
    } else if (row.state === 'RUNNING') {
      const left = Math.max(0, this._since + GRACE - Date.now());
      this._timer = window.setTimeout(() => {
        const words = trans.__(
          'The kernel %1 goes on in its container; the server has lost it.',
          kernel
        );
        this._voice.lives(words, row.job_id);
      }, left);
    }
  }

  private _stop(): void {
    this._unsubscribe();
    if (this._phase !== 'quiet') {
      this._voice.done();
    }
    this._phase = 'quiet';
  }

  private _unsubscribe(): void {
    window.clearTimeout(this._timer);
    this._timer = 0;
    this._jobs?.dispose();
    this._jobs = null;
  }

  private _phase: 'quiet' | 'starting' | 'gone' = 'quiet';
  private _jobs: ISubscription | null = null;
  private _timer = 0;
  private _since = 0;
  private _leaving = false;
  private _disposed = false;
}
