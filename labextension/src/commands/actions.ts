/**
 * Actions on a job: cancel, rerun, save the model, copy the command. The job is named by the
 * arguments of a command or selected by the user.
 */

import { Clipboard, Dialog, Notification, showDialog, InputDialog } from '@jupyterlab/apputils';
import type { TranslationBundle } from '@jupyterlab/translation';
import React from 'react';
import type { ReadonlyPartialJSONObject } from '@lumino/coreutils';
import { ENDED } from '../api/record';
import type { IJobRow } from '../api/types';
import { isJobId } from '../card/snapshot';
import type { ISettings } from '../settings';
import type { ICancelRequests, IRest } from '../tokens';

// eslint-disable-next-line no-control-regex
const CONTROL = /[\u0000-\u001f\u007f-\u009f\u2028\u2029]/;

/** Milliseconds to wait for the view of the job before the confirmation is shown. */
const VIEW_TIMEOUT = 3000;

export class JobActions {
  constructor(
    private readonly rest: IRest,
    private readonly cancels: Pick<ICancelRequests, 'request'>,
    private readonly settings: () => Promise<ISettings>,
    private readonly trans: TranslationBundle
  ) {}

  /** Cancel after confirmation; returns whether the request was sent. */
  async cancel(job: string): Promise<boolean> {
    const { trans } = this;
    const { confirmCancel } = await this.settings();
    const lost = await this.lostIfCancelled(job);
    if (confirmCancel || lost !== '') {
      const question = trans.__('The job is stopped on the cluster. Its saved output is kept.');
      const accepted = await this.confirm(
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
    await this.cancels.request(job, this.trans.__('cancelled in JupyterLab'));
    return true;
  }

  /** Rerun; returns the id of the new job, or undefined if the user declined. */
  async rerun(job: string, resume: boolean): Promise<string | undefined> {
    const { confirmRerun } = await this.settings();
    const question = resume
      ? this.trans.__('A new job resumes the same program from its last checkpoint.')
      : this.trans.__('A new job runs the same program from the beginning.');
    const title = this.trans.__('Run %1 again?', job);
    const buttons = [
      Dialog.cancelButton({ label: this.trans.__('Do not run') }),
      Dialog.okButton({ label: this.trans.__('Run again') })
    ];
    if (confirmRerun && !(await this.confirm(title, [question], buttons))) {
      return undefined;
    }
    return this.rest.rerun(job, resume);
  }

  /** Save the model; returns the new version. */
  async saveModel(job: string, name: string): Promise<string> {
    const { version } = await this.rest.saveModel(job, name);
    Notification.success(this.trans.__('%1: saved version %2.', job, version), {
      autoClose: 5000
    });
    return version;
  }

  /** Copy the command that runs the job again to the clipboard. */
  async copyCommand(job: string): Promise<string> {
    const { command } = await this.rest.job(job);
    if (!command) {
      throw new Error(this.trans.__('The command of %1 is not known.', job));
    }
    if (CONTROL.test(command)) {
      // A line break would run the text before it when pasted into a terminal.
      throw new Error(
        this.trans.__('The command of %1 contains line breaks. Copy it from the job card.', job)
      );
    }
    Clipboard.copyToSystem(command);
    Notification.info(this.trans.__('The command was copied to the clipboard.'), {
      autoClose: 3000
    });
    return command;
  }

  /** What a cancel discards, or a general text if the server does not respond in time. */
  private async lostIfCancelled(job: string): Promise<string> {
    let timer: ReturnType<typeof setTimeout> | undefined;
    const late = new Promise<string>(resolve => {
      timer = setTimeout(() => {
        resolve(this.unknownJobText());
      }, VIEW_TIMEOUT);
    });
    const known = this.rest.job(job).then(
      view => view.lost_if_cancelled,
      () => this.unknownJobText()
    );
    try {
      return await Promise.race([known, late]);
    } finally {
      clearTimeout(timer);
    }
  }

  private unknownJobText(): string {
    return this.trans.__(
      'The type of the job is not known. If it is a kernel, its variables are lost.'
    );
  }

  private async confirm(
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
      // The Enter key must not cancel a job.
      defaultButton: 0
    });
    return button.accept;
  }
}

/** Number of jobs in the selection. */
const MAX_CHOICES = 50;

/** The job id in `args`; throws if there is none. */
export function jobArgument(args: ReadonlyPartialJSONObject, trans: TranslationBundle): string {
  const job = args['job'];
  if (!isJobId(job)) {
    throw new Error(trans.__('%1 is not a job id.', JSON.stringify(job ?? '').slice(0, 80)));
  }
  return job;
}

/**
 * Let the user select one of the latest jobs; undefined if the dialog is closed.
 *
 * @param title - Title and button label. A button "Cancel" would be ambiguous here.
 */
export async function chooseJob(
  rest: IRest,
  title: string,
  kind: 'any' | 'active' | 'ended',
  trans: TranslationBundle
): Promise<string | undefined> {
  const { jobs } = await rest.jobs({ limit: MAX_CHOICES });
  const matching = jobs.filter(
    row => kind === 'any' || ENDED.has(row.state) === (kind === 'ended')
  );
  if (matching.length === 0) {
    throw new Error(
      kind === 'active' ? trans.__('No job is running.') : trans.__('There are no such jobs yet.')
    );
  }
  const items = matching.map(describe);
  const { button, value } = await InputDialog.getItem({
    title,
    items,
    label: trans.__('Job'),
    okLabel: title,
    cancelLabel: trans.__('Close')
  });
  return button.accept && value ? matching[items.indexOf(value)]?.job_id : undefined;
}

function describe({ job_id, state }: IJobRow): string {
  return `${job_id}  ${state}`;
}
