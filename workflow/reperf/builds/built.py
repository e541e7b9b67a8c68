"""environment.json: what a build holds, and what it was made from. It is written last."""

from functools import cache
from pathlib import Path

from pydantic import Field, ValidationError

from reperf.builds.build import Build, ImageBuild
from reperf.builds.digest import digest_of, fingerprint_of
from reperf.errors import ReperfError
from reperf.files import whole_file
from reperf.host import Environment
from reperf.systems import Device

RECORD = "environment.json"


class Built(Environment):
    """environment.json: what runs record of a build, and what it was made from."""

    recipe_sha256: str | None = Field(None, description="of all that it was made from")
    built_in: str | None = Field(None, description="the folder that its programs name")
    compilers: dict[Device, str | None] = Field(
        {}, description="in an image: what compiles for a device while a run trains; None: nothing"
    )
    local_image: str | None = Field(None, description="what the engine is told to run")
    fingerprint: str | None = Field(
        None, description="of the local image's names, sizes and times: unchanged, unchanged image"
    )

    def write(self, folder: Path) -> None:
        """Write it, whole or not at all."""
        with whole_file(folder / RECORD) as stream:
            stream.write(self.model_dump_json(indent=2) + "\n")


def read_built(build: Build) -> Built:
    """What is known of a build.

    Raises:
        ReperfError: it is not made, or not completely.
    """
    path = build.folder / RECORD
    try:
        return Built.model_validate_json(path.read_bytes())
    except (FileNotFoundError, ValidationError):
        raise ReperfError(
            f"{build.folder}: not built; snakemake --force {path} builds it"
        ) from None


def read_environment(build: Build) -> Environment:
    """What a build holds, as runs record it.

    Raises:
        ReperfError: it is not made, or not completely.
    """
    return Environment(**read_built(build).model_dump(include=set(Environment.model_fields)))


def why_build(build: Build) -> str:
    """Why a build must be made before runs can use it, in one line; "" if it need not."""
    folder = build.folder
    try:
        built = read_built(build)
    except ReperfError as error:
        return str(error)
    if built.built_in != str(folder.resolve()):
        return f"{folder}: was built in {built.built_in}, and was moved or copied"
    if built.recipe_sha256 != build.recipe_digest:
        return f"{folder}: was built from another recipe than today's"
    if isinstance(build, ImageBuild):
        return _image_changed(build, built)
    if not build.python.exists():
        return f"{folder}: its Python {build.python.resolve()} is gone"
    return ""


@cache
def digest_now(build: Build) -> str | None:
    """The digest of a build's image as it is; None for a lock, and where nobody has looked yet."""
    if not isinstance(build, ImageBuild):
        return None
    try:
        built = read_built(build)
    except ReperfError:
        return None
    assert built.image
    assert built.local_image
    local = Path(built.local_image)
    if built.fingerprint is None or not local.exists():
        return built.image.digest
    same = fingerprint_of(local) == built.fingerprint
    return built.image.digest if same else digest_of(local)


def _image_changed(build: ImageBuild, built: Built) -> str:
    """Why an image is not the one that the build was made with."""
    assert built.image
    assert built.local_image
    if built.image.engine != build.container.engine:
        return f"{build.folder}: was built with {built.image.engine}"
    local = Path(built.local_image)
    if built.fingerprint is None:  # the engine keeps it, by its digest
        return ""
    if not local.exists():
        return f"{build.folder}: its image {local} is gone"
    if fingerprint_of(local) != built.fingerprint:
        return f"{build.folder}: its image {local} has changed since"
    return ""
