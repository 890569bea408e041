"""What pyproject.toml cannot say: a wheel is made of the sources alone, not of a build folder of before."""

import shutil

from setuptools import setup
from setuptools.command.build_py import build_py


class Fresh(build_py):
    """Modules that moved since the last build would be packed twice."""

    def run(self) -> None:
        if not self.editable_mode:
            shutil.rmtree(self.build_lib, ignore_errors=True)
        super().run()


setup(cmdclass={"build_py": Fresh})
