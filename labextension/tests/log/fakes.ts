/** A fake server with logs in memory, for the models of the log view. */

import { Signal } from '@lumino/signaling';
import type { ILogListener, ISubmarine } from '../../src/tokens';

interface IPlace {
  task: string;
  attempt: string;
  stream: string;
}

/** Logs that can grow, are read by offset and are sent to the listener. */
export class FakeLogs {
  readonly logs = new Map<string, Uint8Array>();
  readonly subscriptions: { at: Record<string, number>; tasks: readonly string[] }[] = [];
  reads: { key: string; offset: number; limit: number }[] = [];
  listener: ILogListener | null = null;
  /** Awaited by every read, so that a test can delay it. */
  gate: Promise<void> = Promise.resolve();
  failure: Error | null = null;

  set(key: string, text: string): void {
    this.logs.set(key, new TextEncoder().encode(text));
  }

  /** Append to a log and send the new bytes like the channel, in chunks of `step`. */
  write(key: string, text: string, step = Infinity): void {
    const old = this.logs.get(key) ?? new Uint8Array();
    const added = new TextEncoder().encode(text);
    const all = new Uint8Array(old.length + added.length);
    all.set(old);
    all.set(added, old.length);
    this.logs.set(key, all);
    for (let i = 0; i < added.length; i += step) {
      this.listener?.chunk(placeOf(key), old.length + i, added.slice(i, i + step));
    }
  }

  /** Append to a log and report the new bytes as skipped. */
  writeSkipped(key: string, text: string): void {
    const from = this.logs.get(key)?.length ?? 0;
    const listener = this.listener;
    this.listener = null;
    this.write(key, text);
    this.listener = listener;
    listener?.skip(placeOf(key), from, this.logs.get(key)?.length ?? 0);
  }

  get submarine(): ISubmarine {
    const channel = {
      connected: true,
      log: (
        _job: string,
        options: { at?: Record<string, number>; tasks: readonly string[] },
        listener: ILogListener
      ) => {
        this.subscriptions.push({ at: options.at ?? {}, tasks: options.tasks });
        this.listener = listener;
        return { isDisposed: false, dispose: () => undefined };
      }
    };
    const connectedChanged = new Signal<typeof channel, boolean>(channel);
    const rest = { logs: () => this._list(), log: this._read };
    const fake = { rest, channel: { ...channel, connectedChanged }, ready: Promise.resolve() };
    return fake as unknown as ISubmarine;
  }

  private async _list() {
    await this.gate;
    if (this.failure !== null) {
      throw this.failure;
    }
    return [...this.logs].map(([key, data]) => ({ ...placeOf(key), length: data.length }));
  }

  private readonly _read = async (_job: string, where: IPlace, at: number, limit: number) => {
    const key = `${where.task}/${where.attempt}/${where.stream}`;
    this.reads.push({ key, offset: at, limit });
    await this.gate;
    const all = this.logs.get(key) ?? new Uint8Array();
    const offset = at < 0 ? Math.max(0, all.length + at) : Math.min(at, all.length);
    return { data: all.slice(offset, offset + limit), offset, length: all.length };
  };
}

function placeOf(key: string): IPlace {
  const [task = '', attempt = '', stream = ''] = key.split('/');
  return { task, attempt, stream };
}
