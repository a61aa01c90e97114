/** Notifications about the start and the loss of a kernel. */

import type { JupyterFrontEnd } from '@jupyterlab/application';
import { Notification } from '@jupyterlab/apputils';
import type { TranslationBundle } from '@jupyterlab/translation';
import { sentence } from '../api/errors';
import { CommandIDs } from '../tokens';

/** Shows messages about one kernel. */
export interface IVoice {
  /**
   * The kernel is starting; called again with each new message. `job` is empty before submission.
   */
  waits(sentence: string, job: string): void;
  /** Remove the message: the kernel runs or was shut down. */
  done(): void;
  /** The kernel is lost. */
  gone(sentence: string, job: string): void;
  /** The kernel runs but the server has lost it; a restart reconnects. */
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
      return; // dismissed by the user
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
    const caption = this._trans.__('Restart the kernel in a new container');
    this._end(message, 'error', job, this._again(this._trans.__('New kernel'), caption));
  }

  lives(message: string, job: string): void {
    const caption = this._trans.__('Reconnect to this kernel and keep its variables');
    this._end(message, 'warning', job, this._again(this._trans.__('Connect'), caption));
  }

  /** Show one at a time: the action of an older notification would end the current kernel. */
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

  /** An action that keeps the notification open. */
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
