/*
 * Some characters are invisible and change the visible ones: they reorder a line, end it, join or hide its letters, or carry a text of
 * their own (tags). People decide by what they see, and programs read line by line. So these characters are written as `\u{202e}` for
 * people, and as JSON escapes for programs.
 */

/** Texts without invisible characters. Checked first, because it needs no Unicode tables. */
const PLAIN = /^[\t\n\x20-\x7e]*$/;

/** Whether a character is invisible by definition (Unicode's Default_Ignorable_Code_Point), or ends a line or an annotation. */
function hasInvisible(text: string): boolean {
  return !PLAIN.test(text) && /[\p{Default_Ignorable_Code_Point}\p{Zl}\p{Zp}\ufff9-\ufffb]/u.test(text);
}

/** Pairs of such a character and the one before it that are ordinary writing. Compiled on first use, because that is slow. */
let inUse: readonly (readonly [RegExp, RegExp])[] | undefined;
const charactersInUse = () =>
  [
    // Joiners: in emojis, and between the letters of scripts that join them.
    [/[\u200c\u200d]/u, /[\p{Extended_Pictographic}\p{Emoji_Modifier}]|\ufe0f/u],
    [
      /[\u200c\u200d]/u,
      new RegExp(`(?!${NEVER_JOINED.map((script) => `\\p{Script=${script}}`).join('|')})[\\p{Lo}\\p{M}]`, 'u'),
    ],
    // Variants: of emojis, of Chinese characters, of Mongolian letters.
    [/[\ufe0e\ufe0f]/u, /\p{Emoji}/u],
    [/[\ufe00-\ufe02\u{e0100}-\u{e01ef}]/u, /\p{Script=Han}/u],
    [/[\u180b-\u180f]/u, /\p{Script=Mongolian}/u],
  ] as const;

/** A joiner between letters of these scripts changes nothing that anybody sees. */
const NEVER_JOINED = [
  ...['Latin', 'Greek', 'Cyrillic', 'Han', 'Hiragana', 'Katakana', 'Hangul', 'Bopomofo', 'Hebrew', 'Armenian'],
  ...['Georgian', 'Thai', 'Lao', 'Cherokee', 'Ethiopic', 'Inherited'],
];

/** Whether one character cannot be seen, after this one (empty: at the beginning). */
export function isInvisible(char: string, before: string): boolean {
  if (!hasInvisible(char)) return false;
  inUse ??= charactersInUse();
  return !inUse.some(([one, after]) => one.test(char) && after.test(before));
}

/** A character as people can see it: `\u{202e}`. */
export function escapedChar(char: string): string {
  return `\\u{${char.codePointAt(0)?.toString(16)}}`;
}

/** A text without invisible characters, or with a replacement for each. */
export function withoutInvisible(text: string, instead: (char: string) => string = () => ''): string {
  if (!hasInvisible(text)) return text;
  let before = '';
  let seen = '';
  for (const char of text) {
    const unseen = isInvisible(char, before);
    seen += unseen ? instead(char) : char;
    if (!unseen) before = char;
  }
  return seen;
}

/** The first invisible character; null: there is none. */
export function findInvisible(text: string): string | null {
  const chars = [...text];
  return chars.find((char, i) => isInvisible(char, chars[i - 1] ?? '')) ?? null;
}

const SHORT: Readonly<Record<string, string>> = {
  ...{ '\u0007': 'a', '\b': 'b', '\t': 't', '\n': 'n', '\v': 'v', '\f': 'f', '\r': 'r', '"': '"', '\\': '\\' },
};

/**
 * The name of a file in one line, as git prints it with `core.quotePath=false`: in quotes and with escapes if it has control characters,
 * quotes or backslashes. Unlike there, also if it has invisible characters.
 */
export function quotedPath(path: string): string {
  let before = '';
  let quoted = '';
  let isPlain = true;
  for (const char of path) {
    const short = SHORT[char];
    const isKept = short === undefined && !/\p{Cc}/u.test(char) && !isInvisible(char, before);
    quoted += isKept ? char : `\\${short ?? octalBytes(char)}`;
    isPlain &&= isKept;
    before = isKept ? char : '';
  }
  return isPlain ? path : `"${quoted}"`;
}

function octalBytes(char: string): string {
  return [...new TextEncoder().encode(char)].map((byte) => byte.toString(8).padStart(3, '0')).join('\\');
}

/**
 * A value as one line of JSON: no character in it ends a line for any reader (Node's own ends one at U+2028 as well), or acts on a
 * terminal.
 */
export function jsonLine(value: unknown): string {
  return harmlessJson(JSON.stringify(value));
}

/** The same for a value that is JSON already. */
export function harmlessJson(json: string): string {
  if (PLAIN.test(json)) return json;
  // DEL, C1, and what is invisible except joiners and variants, which only change how their letters look. JSON has these characters
  // only inside strings, so escaping them keeps the value.
  const unsafe =
    /[\u007f-\u009f]|(?!\u200c|\u200d|[\ufe00-\ufe0f])[\p{Default_Ignorable_Code_Point}\p{Zl}\p{Zp}\ufff9-\ufffb]/gu;
  return json.replace(unsafe, jsonEscape);
}

/** Every unit of a character as JSON escapes it. */
function jsonEscape(char: string): string {
  return Array.from({ length: char.length }, (_, i) => `\\u${char.charCodeAt(i).toString(16).padStart(4, '0')}`).join(
    '',
  );
}
