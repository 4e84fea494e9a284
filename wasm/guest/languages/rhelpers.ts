/**
 * What is asked of R in its own words: a list of functions. They are made once, in an
 * environment that programs do not see.
 *
 * @module
 */

/** R's text; its value is an environment with the functions that r.ts calls. */
export const HELPERS = String.raw`
local({
  replace <- function(name, package, value) {
    for (where in list(asNamespace(package), as.environment(paste0("package:", package)))) {
      if (!exists(name, where, inherits = FALSE)) next
      unlockBinding(name, where)
      assign(name, value, where)
      lockBinding(name, where)
    }
  }
  packages <- "packages of CRAN can't be installed here: R has its base packages, and no network"
  replace("install.packages", "utils", function(pkgs, ...) stop(packages, call. = FALSE))
  replace("download.packages", "utils", function(pkgs, ...) stop(packages, call. = FALSE))
  # Functions that would open an address of the network say so.
  for (name in c("url", "file")) {
    value <- get(name, baseenv())
    body(value) <- bquote({
      if (is.character(description) && any(grepl("^(https?|ftps?)://", description))) {
        stop("R has no network here: ", description[1L], call. = FALSE)
      }
      .(body(value))
    })
    replace(name, "base", value)
  }
  offline <- function(...) stop("R has no network here", call. = FALSE)
  for (name in c("socketConnection", "serverSocket")) replace(name, "base", offline)
  replace("download.file", "utils", offline)
  replace("system", "base", function(...) stop("R can't run other programs here", call. = FALSE))
  replace("system2", "base", function(...) stop("R can't run other programs here", call. = FALSE))
  replace("readline", "base", function(prompt = "") {
    cat(prompt)
    line <- readLines(stdin(), 1L, warn = FALSE)
    if (length(line)) line else ""
  })

  # A device that draws pages to be shown; the program's own devices are its own.
  pages <- "/tmp/.plots"
  count <- 0L
  device <- function(width = 7, height = 5, ...) {
    count <<- count + 1L
    dir.create(pages, showWarnings = FALSE)
    name <- sprintf("%s/%06d-%%06d.png", pages, count)
    grDevices::png(name, width = width * 110, height = height * 110, res = 110, type = "cairo")
    ours <<- c(ours, grDevices::dev.cur())
  }
  ours <- integer()
  options(device = device, bitmapType = "cairo", keep.source = TRUE,
    error = expression(NULL)) # R keeps the calls of an error where it has a handler

  list2env(list(
    begin = function(names, values, unset) {
      Sys.unsetenv(unset)
      names(values) <- names
      if (length(values)) do.call(Sys.setenv, as.list(values))
      setwd("/workspace")
    },
    parse = function(code, file) {
      lines <- strsplit(code, "\r?\n")[[1L]]
      tryCatch(
        parse(text = lines, keep.source = TRUE, srcfile = srcfilecopy(file, lines, isFile = FALSE)),
        error = function(e) conditionMessage(e)
      )
    },
    # The calls by which an error came, the outermost first, with their lines.
    traceback = function() {
      calls <- rev(as.list(get0(".Traceback", baseenv())))
      lines <- vapply(calls, function(call) {
        line <- attr(call, "srcref")
        file <- attr(line, "srcfile")$filename
        where <- if (is.character(file)) paste0(basename(file), ":", line[1L], ": ") else ""
        paste0(where, substr(deparse(call, 80L, nlines = 1L), 1L, 200L))
      }, "")
      if (length(lines) > 40L) {
        left <- sprintf("... %d more ...", length(lines) - 30L)
        lines <- c(head(lines, 10L), left, tail(lines, 20L))
      }
      paste(lines, collapse = "\n")
    },
    unfinished = function(text) {
      tryCatch({
        parse(text = text)
        "FALSE"
      }, error = function(e) {
        ends <- "unexpected end of input|unexpected INCOMPLETE_STRING"
        as.character(grepl(ends, conditionMessage(e)))
      })
    },
    # Ends the pages of a cell, so that they can be shown.
    close = function() {
      for (number in ours) if (number %in% grDevices::dev.list()) grDevices::dev.off(number)
      ours <<- integer()
    },
    complete = function(line) {
      utils:::.assignLinebuffer(line)
      utils:::.assignEnd(nchar(line))
      utils:::.guessTokenFromLine()
      utils:::.completeToken()
      utils:::.retrieveCompletions()
    }
  ), parent = baseenv())
})
`;
