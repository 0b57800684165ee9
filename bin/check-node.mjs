// The entries of the library import this first: an old Node gets a sentence, and not an error about something that it lacks.
import versions from './versions.js';

if (versions.isOld) {
  throw new Error(
    `${versions.sentence} Install a newer Node, or run "npm install node@24" and start your program with "npx node".`,
  );
}
