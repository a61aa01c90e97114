/** Notifications about the start and the loss of a kernel. */

import type { JupyterFrontEnd } from '@jupyterlab/application';
import { Notification } from '@jupyterlab/apputils';
import type { TranslationBundle } from '@jupyterlab/translation';
import { errorMessage } from '../api/rest/errors';
import { CommandIDs } from '../tokens';

/** Shows messages about one kernel. */
export interface INotifier {
  /**
   * The kernel is starting; called again with each new message. `job` is empty before submission.
   */
  showWaiting(message: string, job: string): void;
  /** Remove the message: the kernel runs or was shut down. */
  clear(): void;
  /** The kernel is lost. */
  showLost(message: string, job: string): void;
  /** The kernel runs but is not connected to the server; a restart reconnects it. */
  showDisconnected(message: string, job: string): void;
}

type Commands = JupyterFrontEnd['commands'];

export class KernelNotifications implements INotifier {
  constructor(
    private readonly _commands: Commands,
    private readonly _restart: () => Promise<unknown>,
    private readonly _trans: TranslationBundle
  ) {}

  showWaiting(message: string, job: string): void {
    if (message === this._message) {
      return;
    }
    this._message = message;
    const cancel = this._trans.__('Cancel job…');
    const actions = job
      ? [this._showAction(job), this._action(cancel, () => this._run(CommandIDs.cancel, job))]
      : [];
    if (this._id && Notification.manager.has(this._id)) {
      Notification.update({ id: this._id, message, actions });
      return;
    }
    if (this._id) {
      return; // The user dismissed the notification.
    }
    this._id = Notification.emit(message, 'in-progress', { autoClose: false, actions });
  }

  clear(): void {
    if (this._id) {
      Notification.dismiss(this._id);
    }
    this._id = this._message = '';
  }

  showLost(message: string, job: string): void {
    const caption = this._trans.__('Restart the kernel in a new container');
    this._showEnd(
      message,
      'error',
      job,
      this._restartAction(this._trans.__('New kernel'), caption)
    );
  }

  showDisconnected(message: string, job: string): void {
    const caption = this._trans.__('Reconnect to this kernel and keep its variables');
    this._showEnd(message, 'warning', job, this._restartAction(this._trans.__('Connect'), caption));
  }

  /** Show one at a time: the action of an older notification would end the current kernel. */
  private _showEnd(
    message: string,
    type: 'error' | 'warning',
    job: string,
    action: Notification.IAction
  ): void {
    if (message === this._message) {
      return;
    }
    this.clear();
    this._message = message;
    this._id = Notification.emit(message, type, {
      autoClose: false,
      actions: [this._showAction(job), action]
    });
  }

  private _showAction(job: string): Notification.IAction {
    return this._action(this._trans.__('Show job'), () => this._run(CommandIDs.show, job));
  }

  private _restartAction(label: string, caption: string): Notification.IAction {
    return {
      label,
      caption,
      displayType: 'accent',
      callback: () => {
        this._restart().catch((error: unknown) => Notification.error(errorMessage(error)));
      }
    };
  }

  /** An action that keeps the notification open. */
  private _action(label: string, act: () => Promise<unknown>): Notification.IAction {
    return {
      label,
      callback: event => {
        event.preventDefault();
        act().catch((error: unknown) => Notification.error(errorMessage(error)));
      }
    };
  }

  private _run(command: string, job: string): Promise<unknown> {
    return this._commands.execute(command, { job });
  }

  private _id = '';
  private _message = '';
}
