package modules

import (
	"fmt"
	"slices"
	"strings"

	"github.com/agnivade/levenshtein"
)

// wellKnown are npm packages that many programs use, for those who mistype one.
var wellKnown = strings.Fields(`acorn ajv archiver async autoprefixer axios bcryptjs bluebird body-parser
	chalk cheerio chokidar classnames colors commander cors cross-env csv-parse csv-parser d3 dayjs
	date-fns debug diff dotenv ejs esbuild eslint execa express fast-glob fast-xml-parser figlet formik fs-extra
	fuse.js glob got graphql handlebars highlight.js immer immutable inquirer ioredis jest js-yaml jsdom
	jsonwebtoken katex knex koa leaflet lodash lodash-es luxon marked mathjs minimist mobx mocha moment
	mongodb mongoose ms mysql2 nanoid node-fetch nodemailer papaparse pdf-lib pg pino postcss prettier
	prismjs puppeteer qs ramda react react-dom react-router redis redux rimraf rollup rxjs semver sharp
	simple-statistics socket.io svelte tailwindcss three tslib typescript underscore undici uuid validator
	vite vue webpack winston ws xlsx xml2js yaml yargs zod zustand`)

// nearName suggests the well-known package whose name differs least from one that
// does not exist; it is empty when none is near.
func nearName(name string) string {
	for _, known := range wellKnown {
		if near(name, known) {
			return fmt.Sprintf(" (is it %s?)", known)
		}
	}
	return ""
}

// near says whether one character was left out, put in or replaced, or some are in
// another order.
func near(a, b string) bool {
	if a == b || max(len(a), len(b)) < 4 {
		return false
	}
	letters := func(name string) []rune { return slices.Sorted(slices.Values([]rune(name))) }
	return levenshtein.ComputeDistance(a, b) == 1 || slices.Equal(letters(a), letters(b))
}
