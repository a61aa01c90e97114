/** Provides `ISubmarine`: REST and live updates. Opens no connection before the first use. */

import type { JupyterFrontEnd, JupyterFrontEndPlugin } from '@jupyterlab/application';
import { Notification } from '@jupyterlab/apputils';
import type { ServerConnection } from '@jupyterlab/services';
import type { TranslationBundle } from '@jupyterlab/translation';
import { ITranslator, nullTranslator } from '@jupyterlab/translation';
import type { ICancelRequests, IChannel, IRest } from '../tokens';
import { ISubmarine } from '../tokens';
import { CancelRequests } from './cancel_requests';
import { Channel } from './channel/channel';
import type { IReadiness } from './readiness';
import { checkReadiness, absenceReason } from './readiness';
import { Requests } from './rest/request';
import { Rest } from './rest/rest';

/** Translation domain of the extension. */
export const DOMAIN = 'jupyter_submarine';

class Submarine implements ISubmarine {
  readonly rest: IRest;
  readonly channel: IChannel;
  readonly cancels: ICancelRequests;

  constructor(
    settings: ServerConnection.ISettings,
    private readonly trans: TranslationBundle
  ) {
    this.rest = new Rest(new Requests(settings, trans));
    this.cancels = new CancelRequests((job, why) => this.rest.cancel(job, why));
    this.channel = new Channel(settings, trans, () => absenceReason(this.rest, trans));
  }

  get ready(): Promise<IReadiness> {
    this._ready ??= checkReadiness(this.rest, this.trans).then(readiness => {
      if (!readiness.available) {
        // The server may be restarting: check again next time.
        this._ready = undefined;
      }
      if (readiness.available && readiness.problem) {
        Notification.warning(readiness.problem);
      }
      return readiness;
    });
    return this._ready;
  }

  private _ready: Promise<IReadiness> | undefined;
}

export const apiPlugin: JupyterFrontEndPlugin<ISubmarine> = {
  id: 'jupyter-submarine:api',
  description: 'Jobs of this user through the Submarine server extension.',
  autoStart: true,
  provides: ISubmarine,
  optional: [ITranslator],
  activate: (app: JupyterFrontEnd, translator: ITranslator | null): ISubmarine =>
    new Submarine(app.serviceManager.serverSettings, (translator ?? nullTranslator).load(DOMAIN))
};
