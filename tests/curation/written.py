"""Tasks as people write them: an instruction of some sentences, tests for pytest, a script."""

from t1x.tasks.task import SubGoal, Task, TaskFile

RUN_PYTEST = b"#!/bin/bash\npython3 -m pytest /tests/test_outputs.py -rA --ctrf /logs/verifier/ctrf.json\n"


def written(name: str, instruction: str, tests: str, solution: str) -> Task:
    files = (TaskFile("test.sh", RUN_PYTEST, 0o755), TaskFile("test_outputs.py", tests.encode()))
    return Task(name, instruction, (), files, (SubGoal("solution", (solution,)),))


LOGS = written(
    "log-summary",
    """The folder /app/logs holds one access log a day in the combined log format. Write a summary to /app/summary.csv with the
columns date, requests, errors, bytes: one row a day, ordered by date. A request counts as an error where its status is 500 or
above. Lines that can't be parsed must be skipped, but count them and write their number to /app/skipped.txt.""",
    """import csv

SUMMARY = "/app/summary.csv"


def rows():
    with open(SUMMARY, newline="") as source:
        return list(csv.DictReader(source))


def test_columns_of_the_summary():
    assert list(rows()[0]) == ["date", "requests", "errors", "bytes"]


def test_one_row_for_each_day_in_order():
    dates = [row["date"] for row in rows()]
    assert dates == sorted(dates)
    assert len(dates) == 31


def test_total_of_requests_and_errors():
    assert sum(int(row["requests"]) for row in rows()) == 18421
    assert sum(int(row["errors"]) for row in rows()) == 317


def test_number_of_skipped_lines():
    assert open("/app/skipped.txt").read().strip() == "12"
""",
    """#!/bin/bash
set -e
cd /app
echo date,requests,errors,bytes > summary.csv
for log in $(ls logs/*.log | sort); do
    awk -v day="$(basename "$log" .log)" '$9 ~ /^[0-9]+$/ {n++; b += $10; if ($9 >= 500) e++}
        END {print day "," n "," e+0 "," b}' "$log" >> summary.csv
done
cat logs/*.log | awk '$9 !~ /^[0-9]+$/' | wc -l > skipped.txt
""",
)

LOGS_AGAIN = written(
    "daily-report",
    """One access log a day in the combined log format is in the folder /srv/www/access. Lines that can't be parsed must be
skipped, but write their number to /srv/www/bad_lines.log and count them. A request counts as an error where its status is 400 or
above. Write a summary to /srv/www/report.csv, ordered by date, one row a day, with the columns date, requests, errors, bytes.""",
    """import csv

REPORT = "/srv/www/report.csv"


def entries():
    with open(REPORT, newline="") as handle:
        return list(csv.DictReader(handle))


def test_total_of_errors_and_requests():
    assert sum(int(entry["errors"]) for entry in entries()) == 904
    assert sum(int(entry["requests"]) for entry in entries()) == 7730


def test_number_of_skipped_lines():
    assert open("/srv/www/bad_lines.log").read().strip() == "3"


def test_one_row_for_each_day_in_order():
    dates = [entry["date"] for entry in entries()]
    assert len(dates) == 14
    assert dates == sorted(dates)


def test_columns_of_the_report():
    assert list(entries()[0]) == ["date", "requests", "errors", "bytes"]
""",
    """#!/bin/bash
set -e
cd /srv/www
cat access/*.txt | awk '$9 !~ /^[0-9]+$/' | wc -l > bad_lines.log
echo date,requests,errors,bytes > report.csv
for file in $(ls access/*.txt | sort); do
    awk -v day="$(basename "$file" .txt)" '$9 ~ /^[0-9]+$/ {n++; b += $10; if ($9 >= 400) e++}
        END {print day "," n "," e+0 "," b}' "$file" >> report.csv
done
""",
)
"""The same task with other files and numbers, its sentences and tests in another order."""

OTHERS = (
    written(
        "fix-build",
        """The C project in /app/src doesn't build: `make` stops with an undefined reference. Find out which object file is missing
from the link, mend the Makefile without touching any source file, and leave the finished program at /app/src/bin/convert. It must
print the temperature in Fahrenheit when it's given one in Celsius on its standard input.""",
        """import hashlib
import subprocess


def test_the_program_was_built():
    assert subprocess.run(["file", "/app/src/bin/convert"], capture_output=True, text=True).stdout.count("ELF") == 1


def test_sources_are_untouched():
    digest = hashlib.sha256(open("/app/src/convert.c", "rb").read()).hexdigest()
    assert digest.startswith("9f8a")


def test_boiling_water():
    done = subprocess.run(["/app/src/bin/convert"], input="100", capture_output=True, text=True, timeout=5)
    assert done.stdout.strip() == "212"
""",
        """#!/bin/bash
cd /app/src
sed -i 's/^OBJECTS = .*/& units.o/' Makefile
make clean && make
""",
    ),
    written(
        "git-rescue",
        """Somebody has force-pushed over the branch main of the repository in /app/repo.git, and three commits are lost. They are
still in the reflog. Restore main to the newest of the lost commits, give the state that was pushed the name broken, and write the
subjects of the three commits to /app/found.txt, the oldest first.""",
        """import subprocess


def git(*words):
    return subprocess.check_output(["git", "-C", "/app/repo.git", *words], text=True).strip()


def test_main_is_back():
    assert git("log", "-1", "--format=%s", "main") == "Retry uploads"


def test_what_was_pushed_has_a_name():
    assert git("log", "-1", "--format=%s", "broken") == "Start over"


def test_subjects_in_order():
    assert open("/app/found.txt").read().split("\\n")[:3] == ["Add queue", "Log retries", "Retry uploads"]
""",
        """#!/bin/bash
cd /app/repo.git
lost=$(git reflog show main --format=%h | sed -n 2p)
git branch broken main
git update-ref refs/heads/main "$lost"
git log -3 --reverse --format=%s main > /app/found.txt
""",
    ),
    written(
        "sqlite-report",
        """/app/shop.db is an SQLite database with the tables orders and customers. Write the ten customers with the greatest
turnover of 2023 to /app/top.csv with the columns name, orders, turnover (two decimals), the greatest first. Cancelled orders
don't count. Some customers stand in the table twice under the same e-mail address; treat those as one.""",
        """import csv


def table():
    with open("/app/top.csv", newline="") as source:
        return list(csv.DictReader(source))


def test_ten_customers():
    assert len(table()) == 10


def test_greatest_first():
    turnover = [float(row["turnover"]) for row in table()]
    assert turnover == sorted(turnover, reverse=True)


def test_twins_are_one():
    assert [row["orders"] for row in table() if row["name"] == "Delta Tools"] == ["41"]
""",
        """#!/bin/bash
sqlite3 -header -csv /app/shop.db "
select min(c.name) as name, count(*) as orders, printf('%.2f', sum(o.amount)) as turnover
from orders o join customers c on c.id = o.customer
where o.state <> 'cancelled' and o.placed like '2023%'
group by lower(c.email) order by sum(o.amount) desc limit 10" > /app/top.csv
""",
    ),
)
