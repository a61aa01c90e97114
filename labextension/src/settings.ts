/** The user's settings, as declared in schema/plugin.json. */

import type { ISettingRegistry } from '@jupyterlab/settingregistry';

/** Plugin id of the settings. */
export const SETTINGS = 'jupyter-submarine:plugin';

export interface ISettings {
  /** A log view starts at the end and follows new lines. */
  follow: boolean;
  /** Wrap long lines of a log. */
  wrap: boolean;
  /** Show the time of each line of a log. */
  timestamps: boolean;
  confirmCancel: boolean;
  confirmRerun: boolean;
  /** Label cells that are collected by the tag `submarine`. */
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

/** The current settings; the defaults if they cannot be read. */
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

/** Every setting with a value of the right type; other values are replaced by the defaults. */
export function complete(values: Readonly<Record<string, unknown>>): ISettings {
  const flag = (name: keyof ISettings, fallback: boolean): boolean => {
    const value = values[name];
    return typeof value === 'boolean' ? value : fallback;
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
