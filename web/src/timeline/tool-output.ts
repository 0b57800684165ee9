/** Colours and cursor movements of terminals. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: that is what they begin with
const TERMINAL = /\u001b(?:\[[0-?]*[ -/]*[@-~]|\][^\u0007\u001b]*(?:\u0007|\u001b\\)?|[@-_])/g;

export function withoutSequences(output: string): string {
  return output.replace(TERMINAL, '');
}
