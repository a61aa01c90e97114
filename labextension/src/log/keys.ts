
export type KeyMeaning = 'search' | 'match' | 'trouble' | 'begin' | 'end';

/** The action of a key: Ctrl+F, F3 and F8 in the whole view, Home and End in the text. */
export function meaningOf(event: KeyboardEvent, inText: boolean): KeyMeaning | null {
  if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === 'f') {
    return 'search';
  }
  switch (event.key) {
    case 'F3':
      return 'match';
    case 'F8':
      return 'trouble';
    case 'Home':
      return inText ? 'begin' : null;
    case 'End':
      return inText ? 'end' : null;
    default:
      return null;
  }
}
