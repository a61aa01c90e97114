/** What the user can have done to a job: cancel, run again, save its model, copy it as a command. */

import { Clipboard, Dialog, Notification, showDialog } from '@jupyterlab/apputils';
import type { TranslationBundle } from '@jupyterlab/translation';
import React from 'react';
import type { ISettings } from '../settings';
import type { ICancels, IRest } from '../tokens';

// eslint-disable-next-line no-control-regex
const CONTROL = /[\u0000-\u001f\u007f-\u009f\u2028\u2029]/;

/** Milliseconds to wait for what a question says of a job. */
const PATIENCE = 3000;

export class JobActions {
  constructor(
    private readonly rest: IRest,
    private readonly cancels: Pick<ICancels, 'ask'>,
    private readonly settings: () => Promise<ISettings>,
    private readonly trans: TranslationBundle
  ) {}

  /** Cancel after asking; whether it was done. */
  async cancel(job: string): Promise<boolean> {
    const { trans } = this;
    const { confirmCancel } = await this.settings();
    const lost = await this.lostIfCancelled(job);
    if (confirmCancel || lost !== '') {
      const question = trans.__('It is ended on the cluster. What it has saved stays.');
      const accepted = await this.asked(
        trans.__('Cancel %1?', job),
        [lost, question],
        [
          Dialog.cancelButton({ label: trans.__('Keep running') }),
          Dialog.warnButton({ label: trans.__('Cancel job') })
        ]
      );
      if (!accepted) {
        return false;
      }
    }
    await this.cancels.ask(job, this.trans.__('cancelled in JupyterLab'));
    return true;
  }

  /** The new job's id; nothing where the user did not want it. */
  async rerun(job: string, resume: boolean): Promise<string | undefined> {
    const { confirmRerun } = await this.settings();
    const question = resume
      ? this.trans.__('The same program goes on from its last checkpoint, as a new job.')
      : this.trans.__('The same program runs from its beginning, as a new job.');
    const title = this.trans.__('Run %1 again?', job);
    const buttons = [
      Dialog.cancelButton({ label: this.trans.__('Do not run') }),
      Dialog.okButton({ label: this.trans.__('Run again') })
    ];
    if (confirmRerun && !(await this.asked(title, [question], buttons))) {
      return undefined;
    }
    return this.rest.rerun(job, resume);
  }

  /** The version that was saved. */
  async saveModel(job: string, name: string): Promise<string> {
    const { version } = await this.rest.saveModel(job, name);
    Notification.success(this.trans.__('%1: saved version %2.', job, version), {
      autoClose: 5000
    });
    return version;
  }

  /** Put the command that would run the job again on the clipboard. */
  async copyCommand(job: string): Promise<string> {
    const { command } = await this.rest.job(job);
    if (!command) {
      throw new Error(this.trans.__('The command of %1 is not known.', job));
    }
    if (CONTROL.test(command)) {
      // Pasted into a terminal, a line break runs what stands before it.
      throw new Error(
        this.trans.__('The command of %1 holds line breaks: copy it from its card.', job)
      );
    }
    Clipboard.copyToSystem(command);
    Notification.info(this.trans.__('The command is on the clipboard.'), { autoClose: 3000 });
    return command;
  }

  /** What the server says that a cancel ends for good; asked for a moment only. */
  private async lostIfCancelled(job: string): Promise<string> {
    let timer: ReturnType<typeof setTimeout> | undefined;
    const late = new Promise<string>(resolve => {
      timer = setTimeout(() => {
        resolve(this.unknownLoss());
      }, PATIENCE);
    });
    const told = this.rest.job(job).then(
      view => view.lost_if_cancelled,
      () => this.unknownLoss()
    );
    try {
      return await Promise.race([told, late]);
    } finally {
      clearTimeout(timer);
    }
  }

  private unknownLoss(): string {
    return this.trans.__(
      'The server does not say what this job is: if it is a kernel, its variables are lost.'
    );
  }

  private async asked(
    title: string,
    sentences: readonly string[],
    buttons: readonly Dialog.IButton[]
  ): Promise<boolean> {
    const paragraphs = sentences
      .filter(Boolean)
      .map(sentence => React.createElement('p', { key: sentence }, sentence));
    const { button } = await showDialog({
      title,
      body: React.createElement('div', { className: 'jp-Submarine-question' }, paragraphs),
      buttons,
      // Enter must not cancel a job.
      defaultButton: 0
    });
    return button.accept;
  }
}
