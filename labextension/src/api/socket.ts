/**
 * A websocket that reconnects. It is opened on demand and closed after the last use.
 *
 * Messages that cannot be parsed are dropped.
 */

import type { ServerConnection } from '@jupyterlab/services';
import { URLExt } from '@jupyterlab/coreutils';
import { API_PATH } from './request';
import type { ClientMessage, ServerMessage } from './wire_types';

/** First and longest pause between attempts, in milliseconds. */
const FIRST_PAUSE = 250;
const LONGEST_PAUSE = 30_000;
/** Delay before closing after the last subscription, for pages that re-render; in milliseconds. */
const LINGER = 5_000;
/**
 * When the page wakes up, a connection without messages for this time is replaced; in milliseconds.
 */
const SILENCE = 25_000;
/**
 * A server that sent two hellos repeats them every 30 s. Without any message for this time, the
 * connection is replaced; in milliseconds.
 */
const DEAF = 75_000;
/** Limit for opening a connection, which a proxy may hold forever; in milliseconds. */
const OPENING = 15_000;

export interface ISocketEvents {
  /** The connection is open. */
  opened(): void;
  message(message: ServerMessage): void;
  /** The connection failed; `wasOpen` tells whether it had been open since `acquire`. */
  broken(ever: boolean): void;
  /** The connection was closed because it is no longer used. */
  closed(): void;
}

export class ReconnectingSocket {
  constructor(
    private readonly settings: ServerConnection.ISettings,
    private readonly events: ISocketEvents,
    private readonly random: () => number = Math.random
  ) {}

  /** Whether messages can be sent. */
  get open(): boolean {
    return this._socket?.readyState === WebSocket.OPEN;
  }

  /** Stay connected until `release`. */
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

  /** Close after a delay. */
  release(): void {
    clearTimeout(this._linger);
    this._linger = setTimeout(() => {
      this.close();
      this.events.closed();
    }, LINGER);
  }

  /** Close now and do not reconnect before `acquire`. */
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

  /** The network or the page is back: reconnect at once, and replace a silent connection. */
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
    // Only a message resets the pause: a proxy can open and close connections without a server.
    this._pause = FIRST_PAUSE;
    this.events.message(message);
    return message.type;
  }

  private lost(): void {
    this.drop();
    if (!this._wanted) {
      return;
    }
    // Spread the reconnections of the pages of one server.
    this._retry = setTimeout(
      () => {
        this.connect();
      },
      this._pause * (0.5 + this.random())
    );
    this._pause = Math.min(this._pause * 2, LONGEST_PAUSE);
    this.events.broken(this._ever);
  }

  /** Drop the connection if no message arrives for `limit` milliseconds. */
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

  /** The URL; contains the token only if JupyterLab is configured to append it. */
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
