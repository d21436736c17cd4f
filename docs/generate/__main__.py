"""python -m docs.generate: write the parts of the documents that come from code again."""

import tempfile
from pathlib import Path

from docs.generate import bounds_pictures, change_picture, command_reference, import_picture, meaning_page
from docs.generate.real_releases_page import REAL_RELEASES, releases_text, shown_releases
from docs.generate.settings_table import OPERATIONS, settings_table, shown_settings_table
from docs.generate.transcripts import TOUR, with_answers
from tests.app.process import Service


def main() -> None:
    """What needs no service first. Each document with answers has a service, and so a ledger, of its own."""
    for picture in (change_picture, import_picture):
        picture.FIGURE.write_text(picture.drawn())
    for name, text in bounds_pictures.drawn().items():
        bounds_pictures.FIGURES[name].write_text(text)
    REAL_RELEASES.write_text(REAL_RELEASES.read_text().replace(shown_releases(), releases_text()))
    meaning_page.MEANING.write_text(meaning_page.written(meaning_page.MEANING.read_text()))
    OPERATIONS.write_text(OPERATIONS.read_text().replace(shown_settings_table(), settings_table()))
    with tempfile.TemporaryDirectory() as temporary, Service(temporary=Path(temporary)) as service:
        TOUR.write_text(with_answers(TOUR, service.url))
    cli = command_reference.CLI
    cli.write_text(command_reference.written(cli.read_text()))
    with tempfile.TemporaryDirectory() as temporary, Service(temporary=Path(temporary)) as service:
        cli.write_text(command_reference.with_outputs(cli.read_text(), Path(temporary), service.url))


if __name__ == "__main__":
    main()
