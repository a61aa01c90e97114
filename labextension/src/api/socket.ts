/**
 * One websocket that comes back: opened on demand, closed a little after nobody needs it.
 *
 * Knows nothing of what the messages mean, except that one that cannot be read is dropped.
 */

import type { ServerConnection } from '@jupyterlab/services';
import { URLExt } from '@jupyterlab/coreutils';
import { API_PATH } from './request';
import type { ClientMessage, ServerMessage } from './wire_types';

/** First pause before trying again, and the longest; milliseconds. */
const FIRST_PAUSE = 250;
const LONGEST_PAUSE = 30_000;
/** How long it stays open after the last subscription: a page that re-renders asks again. */
const LINGER = 5_000;
/** A connection that heard nothing for so long may be dead when the page wakes up. */
const SILENCE = 25_000;
/** A server that has said hello twice does so every 30 s; silent for so long it is gone. */
const DEAF = 75_000;
/** One that takes longer to open is given up: a proxy may hold it for ever. */
const OPENING = 15_000;

export interface ISocketEvents {
  /** The connection is there; say what is wanted. */
  opened(): void;
  message(message: ServerMessage): void;
  /** It broke; `ever` tells whether it had been open since it was wanted. */
  broken(ever: boolean): void;
  /** It was closed, because nobody wanted it any more. */
  closed(): void;
}

export class ReconnectingSocket {
  constructor(
    private readonly settings: ServerConnection.ISettings,
    private readonly events: ISocketEvents,
    private readonly random: () => number = Math.random
  ) {}

  /** Whether messages can be sent now. */
  get open(): boolean {
    return this._socket?.readyState === WebSocket.OPEN;
  }

  /** Be connected from now on, until `release`. */
  want(): void {
    clearTimeout(this._linger);
    if (this._wanted) {
      return;
    }
    this._wanted = true;
    this._pause = FIRST_PAUSE;
    this._ever = false;
    window.addEventListener('online', this.wake);
    document.addEventListener('visibilitychange', this.wake);
    this.connect();
  }

  /** Nobody listens any more: close after a little. */
  release(): void {
    clearTimeout(this._linger);
    this._linger = setTimeout(() => {
      this.close();
      this.events.closed();
    }, LINGER);
  }

  /** Close now and stay closed until wanted again. */
  close(): void {
    this._wanted = false;
    clearTimeout(this._linger);
    clearTimeout(this._retry);
    window.removeEventListener('online', this.wake);
    document.removeEventListener('visibilitychange', this.wake);
    this.drop();
  }

  send(message: ClientMessage): void {
    if (this.open) {
      this._socket?.send(JSON.stringify(message));
    }
  }

  /** The network or the page has come back: do not wait for the pause, trust no silent line. */
  private readonly wake = (): void => {
    if (!this._wanted || document.visibilityState === 'hidden') {
      return;
    }
    if (this._socket === null || Date.now() - this._heard > SILENCE) {
      this._pause = FIRST_PAUSE;
      this.connect();
    }
  };

  private connect(): void {
    clearTimeout(this._retry);
    this.drop();
    const socket = new this.settings.WebSocket(this.url());
    this._socket = socket;
    this._heard = Date.now();
    this.watch(OPENING);
    socket.onopen = () => {
      this._ever = true;
      this._heard = Date.now();
      clearInterval(this._watch);
      let hellos = 0;
      socket.onmessage = event => {
        hellos += this.heard(event) === 'hello' ? 1 : 0;
        if (hellos === 2) {
          this.watch(DEAF);
        }
      };
      this.events.opened();
    };
    socket.onclose = () => {
      this.lost();
    };
  }

  private heard(event: MessageEvent<unknown>): string {
    this._heard = Date.now();
    const message = parse(event.data);
    if (!message) {
      return '';
    }
    // Only what speaks is a server worth coming back to quickly: a proxy opens and closes too.
    this._pause = FIRST_PAUSE;
    this.events.message(message);
    return message.type;
  }

  private lost(): void {
    this.drop();
    if (!this._wanted) {
      return;
    }
    // Pages of one server must not all come back in the same moment.
    this._retry = setTimeout(
      () => {
        this.connect();
      },
      this._pause * (0.5 + this.random())
    );
    this._pause = Math.min(this._pause * 2, LONGEST_PAUSE);
    this.events.broken(this._ever);
  }

  /** Gives up a connection on which nothing is heard for `limit`. */
  private watch(limit: number): void {
    clearInterval(this._watch);
    this._watch = setInterval(() => {
      if (Date.now() - this._heard > limit) {
        this.lost();
      }
    }, limit / 5);
  }

  private drop(): void {
    clearInterval(this._watch);
    const socket = this._socket;
    this._socket = null;
    if (socket) {
      socket.onopen = socket.onmessage = socket.onclose = null;
      socket.close();
    }
  }

  /** The address with the token only where JupyterLab itself puts it there. */
  private url(): string {
    const { wsUrl, appendToken, token } = this.settings;
    const url = URLExt.join(wsUrl, API_PATH, 'channel');
    return appendToken && token ? `${url}?token=${encodeURIComponent(token)}` : url;
  }

  private _socket: WebSocket | null = null;
  private _wanted = false;
  private _ever = false;
  private _pause = FIRST_PAUSE;
  private _heard = 0;
  private _retry: ReturnType<typeof setTimeout> | undefined;
  private _linger: ReturnType<typeof setTimeout> | undefined;
  private _watch: ReturnType<typeof setInterval> | undefined;
}

function parse(data: unknown): ServerMessage | null {
  try {
    const message: unknown = typeof data === 'string' ? JSON.parse(data) : null;
    const known = typeof message === 'object' && message !== null && 'type' in message;
    return known ? (message as ServerMessage) : null;
  } catch {
    return null;
  }
}
