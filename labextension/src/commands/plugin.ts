/**
 * Commands that act on jobs, and their palette entries.
 *
 * Palette entries have no arguments: the user selects the job.
 */

import type { JupyterFrontEnd, JupyterFrontEndPlugin } from '@jupyterlab/application';
import { ICommandPalette, Notification } from '@jupyterlab/apputils';
import { ISettingRegistry } from '@jupyterlab/settingregistry';
import type { TranslationBundle } from '@jupyterlab/translation';
import { ITranslator, nullTranslator } from '@jupyterlab/translation';
import { errorMessage } from '../api/rest/errors';
import { DOMAIN } from '../api/plugin';
import { SETTINGS, readSettings } from '../settings';
import { CommandIDs, ISubmarine } from '../tokens';
import { JobActions, chooseJob, jobArgument } from './actions';

/** Select a job, then run the command in `args.command` with it. */
const CHOOSE = 'submarine:choose-job';

type CommandRegistry = JupyterFrontEnd['commands'];

interface IChoice {
  command: string;
  label: string;
  kind: 'any' | 'active' | 'ended';
}

export const commandsPlugin: JupyterFrontEndPlugin<void> = {
  id: SETTINGS,
  description: 'Commands that act on jobs, with their settings.',
  autoStart: true,
  requires: [ISubmarine],
  optional: [ICommandPalette, ISettingRegistry, ITranslator],
  activate: (
    app: JupyterFrontEnd,
    submarine: ISubmarine,
    palette: ICommandPalette | null,
    registry: ISettingRegistry | null,
    translator: ITranslator | null
  ): void => {
    const trans = (translator ?? nullTranslator).load(DOMAIN);
    const actions = new JobActions(
      submarine.rest,
      submarine.cancels,
      () => readSettings(registry),
      trans
    );
    addActions(app.commands, actions, trans);
    addChoice(app.commands, submarine, trans);
    for (const choice of choices(trans)) {
      palette?.addItem({ command: CHOOSE, category: trans.__('Submarine'), args: { ...choice } });
    }
  }
};

function addActions(commands: CommandRegistry, actions: JobActions, trans: TranslationBundle) {
  commands.addCommand(CommandIDs.cancel, {
    label: trans.__('Cancel Job'),
    execute: args => actions.cancel(jobArgument(args, trans))
  });
  commands.addCommand(CommandIDs.rerun, {
    label: args => (args['resume'] === true ? trans.__('Resume Job') : trans.__('Run Job Again')),
    execute: async args => {
      const job = await actions.rerun(jobArgument(args, trans), args['resume'] === true);
      if (job !== undefined && commands.hasCommand(CommandIDs.show)) {
        await commands.execute(CommandIDs.show, { job });
      }
      return job;
    }
  });
  commands.addCommand(CommandIDs.saveModel, {
    label: trans.__('Save Model of Job'),
    execute: args => {
      const name = args['name'];
      return actions.saveModel(jobArgument(args, trans), typeof name === 'string' ? name : '');
    }
  });
  commands.addCommand(CommandIDs.copyCommand, {
    label: trans.__('Copy Job as Command'),
    execute: args => actions.copyCommand(jobArgument(args, trans))
  });
}

function addChoice(commands: CommandRegistry, submarine: ISubmarine, trans: TranslationBundle) {
  const choiceIn = (command: unknown) => choices(trans).find(item => item.command === command);
  commands.addCommand(CHOOSE, {
    label: args => choiceIn(args['command'])?.label ?? trans.__('Choose a Job'),
    isVisible: args => commands.hasCommand(choiceIn(args['command'])?.command ?? ''),
    execute: async args => {
      const choice = choiceIn(args['command']);
      if (!choice) {
        return;
      }
      try {
        const { available, problem } = await submarine.ready;
        if (!available) {
          throw new Error(problem);
        }
        const title = choice.label.replace('…', '');
        const job = await chooseJob(submarine.rest, title, choice.kind, trans);
        if (job !== undefined) {
          const named = choice.command === CommandIDs.tensorboard ? { jobs: [job] } : { job };
          await commands.execute(choice.command, named);
        }
      } catch (problem) {
        // The palette does not show errors of commands.
        Notification.error(errorMessage(problem));
      }
    }
  });
}

function choices(trans: TranslationBundle): IChoice[] {
  return [
    { command: CommandIDs.show, label: trans.__('Show Job…'), kind: 'any' },
    { command: CommandIDs.logs, label: trans.__('Show Logs of Job…'), kind: 'any' },
    { command: CommandIDs.tensorboard, label: trans.__('TensorBoard of Job…'), kind: 'any' },
    { command: CommandIDs.cancel, label: trans.__('Cancel Job…'), kind: 'active' },
    { command: CommandIDs.rerun, label: trans.__('Run Job Again…'), kind: 'ended' },
    { command: CommandIDs.saveModel, label: trans.__('Save Model of Job…'), kind: 'active' },
    { command: CommandIDs.copyCommand, label: trans.__('Copy Job as Command…'), kind: 'any' }
  ];
}
