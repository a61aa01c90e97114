import js from '@eslint/js';
import tseslint from 'typescript-eslint';

const UNMARKED = 'Mark text for users with trans.__().';
const SHOWN_ATTRIBUTES = '/^(title|placeholder|alt|aria-label|aria-description)$/';
const SHOWN_PROPERTIES = '/^(title|label|caption|placeholder|ariaLabel|usage|textContent)$/';
const WORD = '[value=/\\p{L}{2}/u]';
/** Literals that users see: a word in a place that is displayed, and every complete sentence. */
const unmarked = [
  `JSXText${WORD}`,
  `JSXAttribute[name.name=${SHOWN_ATTRIBUTES}] > Literal${WORD}`,
  `Property[key.name=${SHOWN_PROPERTIES}] > Literal${WORD}`,
  `AssignmentExpression[left.property.name=${SHOWN_PROPERTIES}] > Literal${WORD}`,
  `CallExpression[callee.property.name='setAttribute'][arguments.0.value=${SHOWN_ATTRIBUTES}] > Literal${WORD}:last-child`,
  `CallExpression[callee.object.name='Notification'] > Literal${WORD}:first-child`,
  // JupyterLab does not translate descriptions of plugins; errors for developers are not shown.
  'Literal[value=/^\\p{Lu}\\S* .*[.?!]$/u]' +
    ':not(CallExpression[callee.property.name=/^(__|_n)$/] Literal):not(NewExpression > Literal)' +
    ":not(Property[key.name='description'] > Literal)"
].map(selector => ({ selector, message: UNMARKED }));

export default tseslint.config(
  js.configs.recommended,
  ...tseslint.configs.strictTypeChecked,
  {
    languageOptions: { parserOptions: { project: './tsconfig.eslint.json' } },
    rules: {
      '@typescript-eslint/no-explicit-any': 'error',
      '@typescript-eslint/no-namespace': 'off',
      '@typescript-eslint/restrict-template-expressions': ['error', { allowNumber: true }],
      'no-restricted-properties': [
        'error',
        { property: 'innerHTML', message: 'Text from a job is never markup.' },
        { property: 'outerHTML', message: 'Text from a job is never markup.' },
        { property: 'insertAdjacentHTML', message: 'Text from a job is never markup.' }
      ],
      eqeqeq: 'error'
    }
  },
  { files: ['src/**'], rules: { 'no-restricted-syntax': ['error', ...unmarked] } }
);
