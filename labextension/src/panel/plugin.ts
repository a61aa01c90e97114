/** The jobs panel in the left side bar. Its content is loaded with the first use. */

import {
  ILayoutRestorer,
  type JupyterFrontEnd,
  type JupyterFrontEndPlugin
} from '@jupyterlab/application';
import { Clipboard, ICommandPalette, Notification } from '@jupyterlab/apputils';
import { ITranslator, nullTranslator } from '@jupyterlab/translation';
import type { TranslationBundle } from '@jupyterlab/translation';
import { CommandRegistry } from '@lumino/commands';
import type { ReadonlyPartialJSONObject } from '@lumino/coreutils';
import { type Message } from '@lumino/messaging';
import { Menu, Panel } from '@lumino/widgets';
import { errorMessage } from '../api/rest/errors';
import { DOMAIN } from '../api/plugin';
import { ENDED } from '../api/record';
import type { IJobRow } from '../api/types';
import { isJobId } from '../card/snapshot';
import { jobsIcon } from '../icons';
import { openMenu } from '../menus';
import { CommandIDs, ISubmarine } from '../tokens';
import type { JobsModel } from './model';

const ID = 'submarine-jobs-panel';
const COPY_ID = 'submarine:copy-job-id';
/** After the file browser and the running kernels. */
const RANK = 350;

type Commands = JupyterFrontEnd['commands'];

/** The tab, empty until it is shown for the first time. */
class Tab extends Panel {
  constructor(private readonly _load: (tab: Panel) => Promise<void>) {
    super();
    this.id = ID;
    this.addClass('jp-Submarine-jobsTab');
  }

  protected override onAfterShow(message: Message): void {
    super.onAfterShow(message);
    this._loadOnce();
  }

  protected override onAfterAttach(message: Message): void {
    super.onAfterAttach(message);
    if (this.isVisible) {
      this._loadOnce();
    }
  }

  protected override onActivateRequest(message: Message): void {
    super.onActivateRequest(message);
    this.widgets[0]?.activate();
  }

  private _loadOnce(): void {
    this._loading ??= this._load(this).catch((error: unknown) => {
      this._loading = null;
      Notification.error(errorMessage(error));
    });
  }

  private _loading: Promise<void> | null = null;
}

export const panelPlugin: JupyterFrontEndPlugin<void> = {
  id: 'jupyter-submarine:panel',
  description: 'The jobs of the user in the side bar.',
  autoStart: true,
  requires: [ISubmarine],
  optional: [ITranslator, ILayoutRestorer, ICommandPalette],
  activate: (
    app: JupyterFrontEnd,
    submarine: ISubmarine,
    translator: ITranslator | null,
    restorer: ILayoutRestorer | null,
    palette: ICommandPalette | null
  ): void => {
    const { commands, shell } = app;
    const trans = (translator ?? nullTranslator).load(DOMAIN);
    const tab = new Tab(async host => {
      const { JobsPanel } = await import('./panel');
      host.addWidget(
        new JobsPanel({
          submarine,
          trans,
          onOpen: job => {
            void run(commands, CommandIDs.show, { job });
          },
          onMenu: (model, job, x, y) => {
            const menu = menuOf(commands, trans, rowOf(model, job));
            if (menu !== undefined) {
              openMenu(menu, x, y);
            }
          }
        })
      );
    });
    // Icon and caption, like other tabs of the side bar.
    tab.title.icon = jobsIcon;
    tab.title.caption = trans.__('Submarine jobs');
    tab.node.setAttribute('role', 'region');
    tab.node.setAttribute('aria-label', tab.title.caption);
    shell.add(tab, 'left', { rank: RANK });
    restorer?.add(tab, ID);
    commands.addCommand(CommandIDs.jobs, {
      label: trans.__('Show My Jobs'),
      execute: () => {
        shell.activateById(ID);
      }
    });
    palette?.addItem({ command: CommandIDs.jobs, category: trans.__('Submarine') });
    commands.addCommand(COPY_ID, {
      label: trans.__('Copy Id'),
      execute: args => {
        const { job } = args;
        if (isJobId(job)) {
          Clipboard.copyToSystem(job);
        }
      }
    });
  }
};

function rowOf(model: JobsModel, job: string): IJobRow | undefined {
  return model.rows.find(row => row.job_id === job);
}

/** The menu of a job, with the commands that this front end has. */
function menuOf(
  commands: Commands,
  trans: TranslationBundle,
  row: IJobRow | undefined
): Menu | undefined {
  if (row === undefined) {
    return undefined;
  }
  const { job_id: job, notebook, cell_id: cell } = row;
  const ended = ENDED.has(row.state);
  const entries: [string, string, ReadonlyPartialJSONObject, boolean][] = [
    [trans.__('Logs'), CommandIDs.logs, { job }, true],
    [trans.__('Card'), CommandIDs.show, { job }, true],
    [
      trans.__('Show Cell'),
      CommandIDs.revealCell,
      { notebook, cell },
      notebook !== '' && cell !== ''
    ],
    [trans.__('TensorBoard'), CommandIDs.tensorboard, { jobs: [job] }, true],
    [trans.__('Cancel Job…'), CommandIDs.cancel, { job }, !ended],
    [trans.__('Run Again…'), CommandIDs.rerun, { job }, ended],
    [trans.__('Copy Id'), COPY_ID, { job }, true]
  ];
  const own = new CommandRegistry();
  const menu = new Menu({ commands: own });
  menu.addClass('jp-Submarine-jobsMenu');
  for (const [label, command, args, enabled] of entries) {
    if (commands.hasCommand(command)) {
      own.addCommand(command, {
        label,
        isEnabled: () => enabled,
        execute: () => run(commands, command, args)
      });
      menu.addItem({ command });
    }
  }
  return menu;
}

async function run(
  commands: Commands,
  command: string,
  args: ReadonlyPartialJSONObject
): Promise<void> {
  try {
    await commands.execute(command, args);
  } catch (error) {
    Notification.error(errorMessage(error));
  }
}
