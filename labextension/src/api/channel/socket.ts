/**
 * A websocket that reconnects. It is opened on demand and closed after the last use.
 *
 * Messages that cannot be parsed are dropped.
 */

import type { ServerConnection } from '@jupyterlab/services';
import { URLExt } from '@jupyterlab/coreutils';
import { API_PATH } from '../rest/request';
import type { ClientMessage, ServerMessage } from './messages';

/** First and longest pause between attempts, in milliseconds. */
const FIRST_PAUSE = 250;
const LONGEST_PAUSE = 30_000;
/** Delay before closing after the last subscription, for pages that re-render; in milliseconds. */
const CLOSE_DELAY = 5_000;
/**
 * When the network or the page is back, a connection without messages for this time is replaced;
 * in milliseconds.
 */
const WAKE_TIMEOUT = 25_000;
/**
 * A server that sent two hellos repeats them every 30 s. Without any message for this time, the
 * connection is replaced; in milliseconds.
 */
const HEARTBEAT_TIMEOUT = 75_000;
/** Limit for opening a connection, which a proxy may hold forever; in milliseconds. */
const OPEN_TIMEOUT = 15_000;

export interface ISocketEvents {
  /** The connection is open. */
  opened(): void;
  message(message: ServerMessage): void;
  /** The connection failed; `wasOpen` tells whether it had been open since `acquire`. */
  broken(wasOpen: boolean): void;
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
  acquire(): void {
    clearTimeout(this._closeTimer);
    if (this._acquired) {
      return;
    }
    this._acquired = true;
    this._pause = FIRST_PAUSE;
    this._wasOpen = false;
    window.addEventListener('online', this.onWake);
    document.addEventListener('visibilitychange', this.onWake);
    this.connect();
  }

  /** Close after a delay. */
  release(): void {
    clearTimeout(this._closeTimer);
    this._closeTimer = setTimeout(() => {
      this.close();
      this.events.closed();
    }, CLOSE_DELAY);
  }

  /** Close now and do not reconnect before `acquire`. */
  close(): void {
    this._acquired = false;
    clearTimeout(this._closeTimer);
    clearTimeout(this._retryTimer);
    window.removeEventListener('online', this.onWake);
    document.removeEventListener('visibilitychange', this.onWake);
    this.drop();
  }

  send(message: ClientMessage): void {
    if (this.open) {
      this._socket?.send(JSON.stringify(message));
    }
  }

  /** The network or the page is back: reconnect at once, and replace a silent connection. */
  private readonly onWake = (): void => {
    if (!this._acquired || document.visibilityState === 'hidden') {
      return;
    }
    if (this._socket === null || Date.now() - this._lastMessage > WAKE_TIMEOUT) {
      this._pause = FIRST_PAUSE;
      this.connect();
    }
  };

  private connect(): void {
    clearTimeout(this._retryTimer);
    this.drop();
    const socket = new this.settings.WebSocket(this.url());
    this._socket = socket;
    this._lastMessage = Date.now();
    this.startWatchdog(OPEN_TIMEOUT);
    socket.onopen = () => {
      this._wasOpen = true;
      this._lastMessage = Date.now();
      clearInterval(this._watchdog);
      let hellos = 0;
      socket.onmessage = event => {
        hellos += this.receive(event) === 'hello' ? 1 : 0;
        if (hellos === 2) {
          this.startWatchdog(HEARTBEAT_TIMEOUT);
        }
      };
      this.events.opened();
    };
    socket.onclose = () => {
      this.onLost();
    };
  }

  private receive(event: MessageEvent<unknown>): string {
    this._lastMessage = Date.now();
    const message = parse(event.data);
    if (!message) {
      return '';
    }
    // Only a message resets the pause: a proxy can open and close connections without a server.
    this._pause = FIRST_PAUSE;
    this.events.message(message);
    return message.type;
  }

  private onLost(): void {
    this.drop();
    if (!this._acquired) {
      return;
    }
    // Spread the reconnections of the pages of one server.
    this._retryTimer = setTimeout(
      () => {
        this.connect();
      },
      this._pause * (0.5 + this.random())
    );
    this._pause = Math.min(this._pause * 2, LONGEST_PAUSE);
    this.events.broken(this._wasOpen);
  }

  /** Drop the connection if no message arrives for `limit` milliseconds. */
  private startWatchdog(limit: number): void {
    clearInterval(this._watchdog);
    this._watchdog = setInterval(() => {
      if (Date.now() - this._lastMessage > limit) {
        this.onLost();
      }
    }, limit / 5);
  }

  private drop(): void {
    clearInterval(this._watchdog);
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
  private _acquired = false;
  private _wasOpen = false;
  private _pause = FIRST_PAUSE;
  private _lastMessage = 0;
  private _retryTimer: ReturnType<typeof setTimeout> | undefined;
  private _closeTimer: ReturnType<typeof setTimeout> | undefined;
  private _watchdog: ReturnType<typeof setInterval> | undefined;
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
