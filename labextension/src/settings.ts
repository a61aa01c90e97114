/** The user's settings, as schema/plugin.json defines them; read where they are needed. */

import type { ISettingRegistry } from '@jupyterlab/settingregistry';

/** Plugin under whose name the settings are kept. */
export const SETTINGS = 'jupyter-submarine:plugin';

export interface ISettings {
  /** A log view begins at the end and follows what is written. */
  follow: boolean;
  /** Long lines of a log are wrapped. */
  wrap: boolean;
  /** A log view shows when each line arrived. */
  timestamps: boolean;
  confirmCancel: boolean;
  confirmRerun: boolean;
  /** Cells with the tag `submarine` show it. */
  markCollectedCells: boolean;
}

export const DEFAULTS: Readonly<ISettings> = {
  follow: true,
  wrap: false,
  timestamps: false,
  confirmCancel: true,
  confirmRerun: false,
  markCollectedCells: true
};

/** The settings now; the defaults where there is no registry or it knows no such settings. */
export async function readSettings(registry: ISettingRegistry | null): Promise<ISettings> {
  if (!registry) {
    return { ...DEFAULTS };
  }
  try {
    return complete((await registry.load(SETTINGS)).composite);
  } catch {
    return { ...DEFAULTS };
  }
}

/** Every setting with a value of its type, whatever somebody wrote into the file. */
export function complete(values: Readonly<Record<string, unknown>>): ISettings {
  const flag = (name: keyof ISettings, otherwise: boolean): boolean => {
    const value = values[name];
    return typeof value === 'boolean' ? value : otherwise;
  };
  return {
    follow: flag('follow', DEFAULTS.follow),
    wrap: flag('wrap', DEFAULTS.wrap),
    timestamps: flag('timestamps', DEFAULTS.timestamps),
    confirmCancel: flag('confirmCancel', DEFAULTS.confirmCancel),
    confirmRerun: flag('confirmRerun', DEFAULTS.confirmRerun),
    markCollectedCells: flag('markCollectedCells', DEFAULTS.markCollectedCells)
  };
}
