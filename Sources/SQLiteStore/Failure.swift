internal import CSQLite
internal import FanoutStore
private import Glibc

/// Makes of what SQLite and the system said what callers can act on.
struct Failure {
  let path: String
  /// SQLite's extended result code.
  let code: Int32
  /// SQLite's text for it.
  let reason: String
  /// The system's error number behind it, 0 if there is none.
  let systemError: Int32
  /// Whether the file has been open before, so that what is wrong with it now may pass.
  let hasWorked: Bool

  var error: StoreError {
    switch code & 0xFF {
    case SQLITE_BUSY, SQLITE_LOCKED: make(.busy, "is locked by another process")
    case SQLITE_FULL: full
    case SQLITE_READONLY, SQLITE_PERM: unwritable
    // SQLite has codes of its own for a full disk and for a file that it could open for reading only. Whatever else the system
    // says to a write is an I/O error.
    case SQLITE_IOERR, SQLITE_CANTOPEN:
      switch systemError {
      case ENOSPC, EDQUOT: full
      case EROFS, EACCES, EPERM: unwritable
      case ENOENT, ENOTDIR, EISDIR, ELOOP, ENAMETOOLONG: notThere
      default: unreachable
      }
    case SQLITE_NOMEM, SQLITE_PROTOCOL: unreachable
    // To SQLite a file that can't be read for the device's sake is a damaged one.
    case SQLITE_CORRUPT where systemError != 0: unreachable
    case SQLITE_CORRUPT, SQLITE_NOTADB:
      make(.corrupt, "is damaged or not a database", remedy: "Move it away and replay into a new one")
    case SQLITE_CONSTRAINT, SQLITE_TOOBIG, SQLITE_MISMATCH: make(.refusedValue, "refused a value")
    default: make(.refused, "refused a statement")
    }
  }

  private var full: StoreError { make(.unavailable, "has no room on its disk", remedy: "Free some space") }
  private var unreachable: StoreError { make(.unavailable, "can't be reached") }

  /// For somebody to mend: a worker at work waits for that, and one that is started says so at once.
  private var unwritable: StoreError {
    make(
      hasWorked ? .unavailable : .cannotOpen, "can't be written",
      remedy: "Check the permissions of the file and its folder, and how the file system is mounted")
  }

  private var notThere: StoreError {
    make(
      hasWorked ? .unavailable : .cannotOpen, "can't be opened",
      remedy: "Check that the folder exists and may be written, or name another file with --store sqlite:PATH")
  }

  private func make(_ kind: StoreError.Code, _ what: String, remedy: String? = nil) -> StoreError {
    let cause = systemError == 0 ? "" : " (\(unsafe String(cString: strerror(systemError))))"
    return StoreError(
      kind, "the SQLite store \(path) \(what): \(reason)\(cause)" + (remedy.map { ". \($0)" } ?? ""),
      nativeCode: Int(code))
  }
}

extension StoreError {
  /// Whether SQLite could not use the file as it was open: what is behind its path may be another one by now.
  var isOfFile: Bool {
    let ofFile = [SQLITE_IOERR, SQLITE_CANTOPEN, SQLITE_READONLY, SQLITE_PERM, SQLITE_CORRUPT]
    return code == .unavailable && ofFile.contains(Int32(truncatingIfNeeded: nativeCode) & 0xFF)
  }
}
