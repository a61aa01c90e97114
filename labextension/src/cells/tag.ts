/** The tag that collects a cell; same rule as in the kernel (`submarine_jobs.program`). */

export const TAG = 'submarine';
/** Collects a cell without running it in the notebook. */
const ONLY_TAG = 'submarine-only';

/** The program file into which the tags collect the cell; null if they do not collect it. */
export function collectedInto(tags: unknown): string | null {
  if (!Array.isArray(tags)) {
    return null;
  }
  const ours = tags
    .filter((tag): tag is string => typeof tag === 'string')
    .map(tag => tag.trim())
    .filter(tag => [TAG, ONLY_TAG].includes(tag.split(':', 1)[0]?.trimEnd() ?? ''));
  const named = ours.find(tag => tag.includes(':'));
  return named !== undefined
    ? named.slice(named.indexOf(':') + 1).trim()
    : ours.length > 0
      ? 'main.py'
      : null;
}

/** The tags with the collecting tag added or removed. */
export function toggled(tags: unknown): string[] {
  const all = Array.isArray(tags)
    ? tags.filter((tag): tag is string => typeof tag === 'string')
    : [];
  return collectedInto(all) === null
    ? [...all, TAG]
    : all.filter(tag => collectedInto([tag]) === null);
}
