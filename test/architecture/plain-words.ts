// The words and sentences that were replaced by plain ones (CONTRIBUTING.md, Plain English).

const REPLACED = new RegExp(
  [
    '\\w*(?:settle|patiently|hopeless|asItShouldBe)\\w*',
    '\\b(?:outlook|onward|letGo|anew)\\b',
    '\\b(?:interface|class|type) Room\\b', // a sandbox or a size limit
    '\\bworth\\(', // a name; the word is allowed
    'Who asks is not known',
    'is not called that',
    'is not to be had',
    'half a character',
    'pinned otherwise',
    'to no end',
    'gone over until',
    'taken up once more',
    'signs? of life',
    'crashes (?:have )?left over',
    'knows schemas',
    'or (?:is|are) about to[.;]',
  ].join('|'),
  'gi',
);

// A bell notifies: a rung is a step of the ladder, and only that.
const OF_BELLS = /\bbells?\b[^.;\n]*\brung\b|\brung\b[^.;\n]*\bbells?\b|\b(?:is|are|was|were|be|been) rung\b/gi;

/** Allowed: a state of sessions, names of JavaScript, and a state of plans, in quotes. */
const ALLOWED = /unsettled|allSettled|PromiseSettledResult|(?<=['"`])settled(?=['"`])/gi;

/** Every word of a file that was replaced. */
export function replacedWords(path: string, source: string): string[] {
  const text = toRead(path, source).replaceAll(ALLOWED, '');
  return [...(text.match(REPLACED) ?? []), ...(text.match(OF_BELLS) ?? [])];
}

/** Without the places that name replaced words on purpose: what was written before, and earlier names in the list of changes. */
function toRead(path: string, source: string): string {
  if (path === 'CONTRIBUTING.md') return source.replaceAll(/^\|.*$/gm, '');
  return path === 'CHANGELOG.md' ? source.replaceAll(/`[^`\n]*`/g, '') : source;
}
