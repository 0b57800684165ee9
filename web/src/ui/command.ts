const COMMAND = /^throughline(?= |$)/;
const QUOTED = /"throughline(?= )/g;

/** A command line of ours, as a shell on the server's machine runs it. `command`: how it runs our program for this data. */
export function printable(line: string, command: string): string {
  return line.replace(COMMAND, () => command);
}

/** A text of ours with commands in double quotes, as they work there. */
export function withCommands(text: string, command: string): string {
  return text.replaceAll(QUOTED, () => `"${command}`);
}
