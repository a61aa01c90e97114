/**
 * The model of one card: the snapshot of its output first, then the job from the server.
 *
 * Subscribes to the channel only while the card is visible. No DOM.
 */

import type { TranslationBundle } from '@jupyterlab/translation';
import type { IDisposable } from '@lumino/disposable';
import { type ISignal, Signal } from '@lumino/signaling';
import {
  ENDED,
  type IJobView,
  type IModelVersion,
  type ISeries,
  type ITask
} from '../api/job_types';
import type { ICancelRequest, ISubmarine, ISubscription } from '../tokens';
import { Extras } from './extras';
import { allTasks, withOthers } from './all_tasks';
import type { ISnapshot } from './snapshot';

/** Delay before a card that scrolled out of view is unsubscribed, in milliseconds. */
const LINGER = 2000;

/** `loading`: no response yet. `stale`: the shown data is old, see `problem`. */
export type Standing = 'asking' | 'live' | 'away';

export class CardModel implements IDisposable {
  /**
   * @param submarine - Null if the API plugin is disabled.
   * @param jobId - A valid job id.
   * @param snapshot - Null in a tab, which starts without data.
   */
  constructor(
    private readonly submarine: ISubmarine | null,
    private readonly trans: TranslationBundle,
    readonly jobId: string,
    snapshot: ISnapshot | null
  ) {
    this._snapshot = snapshot;
    this._extras = submarine
      ? new Extras(submarine, jobId, () => {
          this._changed.emit();
        })
      : null;
    submarine?.channel.connectedChanged.connect(this.onConnected);
    submarine?.cancels.changed.connect(this.onCancel);
    if (!submarine) {
      this.away(trans.__('The Submarine extension is disabled on this page.'));
    }
  }

  get changed(): ISignal<this, void> {
    return this._changed;
  }

  /** The latest known view; null if there is none. */
  get view(): IJobView | null {
    return this._live ?? this._snapshot?.view ?? null;
  }

  /** Whether `view` comes from the server and not from the notebook. */
  get fromServer(): boolean {
    return this._live !== null;
  }

  /** Time of the shown data; null if unknown. */
  get time(): number | null {
    return this._live ? this._heard : (this._snapshot?.time ?? null);
  }

  /** The pending cancel request of this page. */
  get cancelRequest(): ICancelRequest | null {
    return this.submarine?.cancels.of(this.jobId) ?? null;
  }

  /** Values that the cell returned, from the output. */
  get result(): Readonly<Record<string, string>> {
    return this._snapshot?.result ?? {};
  }

  get standing(): Standing {
    return this._standing;
  }

  get problem(): string {
    return this._problem;
  }

  get series(): readonly ISeries[] {
    return this._extras?.series ?? [];
  }

  get models(): readonly IModelVersion[] {
    return this._extras?.models ?? [];
  }

  /** All loaded tasks: those of the view, and those that were loaded separately. */
  get tasks(): readonly ITask[] {
    const { view } = this;
    return withOthers(view?.record.tasks ?? [], this._more);
  }

  get visible(): boolean {
    return this._visible;
  }

  get isDisposed(): boolean {
    return this._disposed;
  }

  /** A newer output of the same job from the kernel. */
  setSnapshot(snapshot: ISnapshot): void {
    if (snapshot.jobId === this.jobId) {
      this._snapshot = snapshot;
      this._changed.emit();
    }
  }

  /** Set whether the card is visible; the channel is used only while it is. */
  setVisible(visible: boolean): void {
    if (this._disposed || visible === this._visible) {
      return;
    }
    this._visible = visible;
    clearTimeout(this._lingering);
    if (visible) {
      this.subscribe();
    } else {
      this._lingering = setTimeout(() => {
        this.unsubscribe();
      }, LINGER);
    }
    this._changed.emit();
  }

  /** Load the tasks that the view omits. */
  async loadTasks(): Promise<void> {
    if (this.submarine && this._live) {
      this._more = await allTasks(this.submarine.rest, this.jobId, () => this._disposed);
      this._changed.emit();
    }
  }

  /** Reload the models after one was saved. */
  async refreshModels(): Promise<void> {
    if (this._live) {
      await this._extras?.refreshModels();
    }
  }

  dispose(): void {
    if (!this._disposed) {
      this._disposed = true;
      clearTimeout(this._lingering);
      this.submarine?.channel.connectedChanged.disconnect(this.onConnected);
      this.submarine?.cancels.changed.disconnect(this.onCancel);
      this.unsubscribe();
      this._extras?.dispose();
      Signal.clearData(this);
    }
  }

  private subscribe(): void {
    if (!this.submarine || this._job) {
      return;
    }
    this._job = this.submarine.channel.job(
      this.jobId,
      view => {
        this.take(view);
      },
      problem => {
        this.away(problem);
      }
    );
    void this.submarine.ready.then(({ available, problem }) => {
      if (!available && !this._disposed && this._standing !== 'live') {
        this.away(problem);
      }
    });
    if (this._live) {
      this._extras?.listen(this._live);
    }
  }

  private unsubscribe(): void {
    this._job?.dispose();
    this._extras?.rest();
    this._job = null;
  }

  private take(view: IJobView): void {
    // The channel is shared: ignore other jobs.
    if (this._disposed || view.record.job_id !== this.jobId) {
      return;
    }
    const before = this._live;
    this._live = view;
    this._heard = Date.now() / 1000;
    this._standing = 'live';
    this._problem = '';
    if (ENDED.has(view.record.state)) {
      this.submarine?.cancels.forget(this.jobId);
    }
    this._changed.emit();
    if (this._job) {
      this._extras?.listen(view);
    }
    this._extras?.look(before, view);
  }

  private readonly onCancel = (_: unknown, job: string): void => {
    if (job === this.jobId) {
      this._changed.emit();
    }
  };

  private readonly onConnected = (): void => {
    const ended = this._live ? ENDED.has(this._live.record.state) : false;
    if (this.submarine?.channel.connected) {
      this._problem = '';
      this._standing = this._live ? 'live' : 'asking';
      this._changed.emit();
    } else if (!ended && this._standing === 'live') {
      this.away(this.trans.__('The connection to the server is lost. Reconnecting …'));
    }
  };

  private away(problem: string): void {
    if (!this._disposed) {
      this._standing = 'away';
      this._problem = problem;
      this._changed.emit();
    }
  }

  private readonly _changed = new Signal<this, void>(this);
  private _snapshot: ISnapshot | null;
  private _live: IJobView | null = null;
  private _heard: number | null = null;
  private _more: ReadonlyMap<string, ITask> = new Map<string, ITask>();
  private _standing: Standing = 'asking';
  private _problem = '';
  private _visible = false;
  private _disposed = false;
  private _job: ISubscription | null = null;
  private readonly _extras: Extras | null;
  private _lingering: ReturnType<typeof setTimeout> | undefined;
}
