/** A kernel's sentences as notifications: one that lasts as long as the wait, one for its end. */

import type { JupyterFrontEnd } from '@jupyterlab/application';
import { Notification } from '@jupyterlab/apputils';
import type { TranslationBundle } from '@jupyterlab/translation';
import { sentence } from '../api/errors';
import { CommandIDs } from '../tokens';

/** Where sentences go; each answers for one kernel. */
export interface IVoice {
  /** The start goes on; again with each new sentence. No job yet: it is empty. */
  waits(sentence: string, job: string): void;
  /** What was said is over: the kernel is there, or gone as it should. */
  done(): void;
  /** The kernel is gone. */
  gone(sentence: string, job: string): void;
  /** The server knows it no more, but it runs: starting it again finds it. */
  lives(sentence: string, job: string): void;
}

type Commands = JupyterFrontEnd['commands'];

export class Notifications implements IVoice {
  constructor(
    private readonly _commands: Commands,
    private readonly _restart: () => Promise<unknown>,
    private readonly _trans: TranslationBundle
  ) {}

  waits(message: string, job: string): void {
    if (message === this._said) {
      return;
    }
    this._said = message;
    const cancel = this._trans.__('Cancel job…');
    const actions = job
      ? [this._show(job), this._action(cancel, () => this._run(CommandIDs.cancel, job))]
      : [];
    if (this._id && Notification.manager.has(this._id)) {
      Notification.update({ id: this._id, message, actions });
      return;
    }
    if (this._id) {
      return; // the user has put it away
    }
    this._id = Notification.emit(message, 'in-progress', { autoClose: false, actions });
  }

  done(): void {
    if (this._id) {
      Notification.dismiss(this._id);
    }
    this._id = this._said = '';
  }

  gone(message: string, job: string): void {
    const caption = this._trans.__('Start the kernel again, in a new container');
    this._end(message, 'error', job, this._again(this._trans.__('New kernel'), caption));
  }

  lives(message: string, job: string): void {
    const caption = this._trans.__('Go on with this kernel and its variables');
    this._end(message, 'warning', job, this._again(this._trans.__('Connect'), caption));
  }

  /** One at a time: what an older one offers would end the kernel that is there now. */
  private _end(
    message: string,
    type: 'error' | 'warning',
    job: string,
    action: Notification.IAction
  ): void {
    if (message === this._said) {
      return;
    }
    this.done();
    this._said = message;
    this._id = Notification.emit(message, type, {
      autoClose: false,
      actions: [this._show(job), action]
    });
  }

  private _show(job: string): Notification.IAction {
    return this._action(this._trans.__('Show job'), () => this._run(CommandIDs.show, job));
  }

  private _again(label: string, caption: string): Notification.IAction {
    return {
      label,
      caption,
      displayType: 'accent',
      callback: () => {
        this._restart().catch((error: unknown) => Notification.error(sentence(error)));
      }
    };
  }

  /** An action that leaves the notification where it is. */
  private _action(label: string, act: () => Promise<unknown>): Notification.IAction {
    return {
      label,
      callback: event => {
        event.preventDefault();
        act().catch((error: unknown) => Notification.error(sentence(error)));
      }
    };
  }

  private _run(command: string, job: string): Promise<unknown> {
    return this._commands.execute(command, { job });
  }

  private _id = '';
  private _said = '';
}
