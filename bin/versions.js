// Whether this Node is too old. JavaScript that every Node can read.
const NEEDED = '24.15';

/** @param {string} version */
function isNewEnough(version) {
  const [major = 0, minor = 0] = version.split('.').map(Number);
  const [neededMajor = 0, neededMinor = 0] = NEEDED.split('.').map(Number);
  return major > neededMajor || (major === neededMajor && minor >= neededMinor);
}

exports.isNewEnough = isNewEnough;
exports.isOld = !isNewEnough(process.versions.node);
exports.sentence = `Throughline needs Node ${NEEDED} or newer, and this is Node ${process.versions.node}.`;
